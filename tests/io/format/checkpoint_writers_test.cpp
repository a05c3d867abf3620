#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>
#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/text_hub.hpp"

namespace checkpoint_writers_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::TextHub;

namespace {

namespace fs = std::filesystem;

constexpr int ranks = 3;

/// Something that a rank does before its n-th exchange, or differently from the others.
struct Twist {
  std::function<void(int rank, size_t call)> before_call = [](int, size_t) {};
  std::function<void(int rank, std::vector<CheckpointPiece>&)> pieces = [](int, auto&) {};
  std::function<std::string(int rank, const std::string& folder)> folder =
      [](int, const std::string& name) { return name; };
  size_t ends_at = SIZE_MAX;
};

/// The error text of each rank, or "".
struct Outcome {
  std::vector<std::string> texts{ranks};
  std::vector<std::map<int, std::string>> failures{ranks};
};

const std::vector<int64_t> rows{0, 1, 2, 3, 4, 5};

/// Returns pieces: "rows" has one row per rank, "one" is stored on rank 2.
std::vector<CheckpointPiece> pieces_of(const int64_t& one) {
  std::vector<CheckpointPiece> pieces{
      {"one", {}, {}, std::as_bytes(std::span(&one, 1)), ranks - 1}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(rows));
  for (int64_t r = 0; r < ranks; ++r) {
    pieces.push_back({"rows",
                      {r, 0},
                      {r + 1, 2},
                      bytes.subspan(static_cast<size_t>(r) * 16, 16),
                      static_cast<int>(r)});
  }
  return pieces;
}

Outcome save(const std::string& folder, int64_t value, const Twist& twist = {},
             uint64_t max_file_bytes = 4096) {
  TextHub hub(ranks, twist.ends_at);
  Outcome outcome;
  test::on_threads(ranks, [&](int rank) {
    const auto at = static_cast<size_t>(rank);
    size_t calls = 0;
    const auto gather = [&](const std::string& text) {
      twist.before_call(rank, ++calls);
      return hub.gather(rank, text);
    };
    std::vector<CheckpointPiece> pieces = pieces_of(value);
    // A rank must not read other ranks' data.
    for (CheckpointPiece& piece : pieces) {
      if (piece.writer != rank) piece.data = {};
    }
    twist.pieces(rank, pieces);
    try {
      write_checkpoint(
          twist.folder(rank, folder), {{"one", "I64", {}}, {"rows", "I64", {ranks, 2}}}, pieces,
          {{"value", value}, {"of", rank}},
          {.max_file_bytes = max_file_bytes, .rank = rank, .writers = ranks, .gather = gather});
    } catch (const RankFailures& error) {
      outcome.texts[at] = error.what();
      outcome.failures[at] = error.failures();
    } catch (const std::exception& error) {
      outcome.texts[at] = error.what();
    }
  });
  return outcome;
}

int64_t value_at(const std::string& folder) {
  const CheckpointReader reader(folder);
  reader.verify();
  std::vector<int64_t> one(1), all(rows.size());
  reader.read("one", {}, {}, std::as_writable_bytes(std::span(one)));
  reader.read("rows", {0, 0}, {ranks, 2}, std::as_writable_bytes(std::span(all)));
  CHECK(all == rows);
  CHECK(reader.state().at("value") == one[0]);
  CHECK(reader.state().at("of") == 0);
  return one[0];
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the temporary folder next to "run/latest".
fs::path temporary_in(const fs::path& root) {
  for (const std::string& name : names_in(root / "run")) {
    if (name.starts_with("tmp.")) return root / "run" / name;
  }
  return {};
}

/// Checks that only the previous checkpoint remains, that `at_fault` threw `text`, and that all
/// other ranks name exactly those.
void check_refused(const fs::path& root, const Outcome& outcome, const std::set<int>& at_fault,
                   const std::string& text) {
  std::set<int> named;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<size_t>(rank);
    CAPTURE(rank, outcome.texts[at]);
    std::set<int> failed;
    for (const auto& [other, reason] : outcome.failures[at]) {
      failed.insert(other);
      CHECK_THAT(reason, Contains(text));
    }
    CHECK_THAT(outcome.texts[at], Contains(text));
    CHECK(failed == (at_fault.count(rank) ? std::set<int>{} : at_fault));
    CHECK(outcome.texts[at].find('\n') == std::string::npos);
  }
  CHECK(value_at((root / "run/latest").string()) == 1);
  CHECK(names_in(root / "run") == std::vector<std::string>{"latest"});
}

}  // namespace

TEST_CASE("several writers write a checkpoint, each its own files") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  for (const int64_t value : {1, 2}) {
    const Outcome outcome = save(folder, value);
    CHECK(outcome.texts == std::vector<std::string>(ranks));
    CHECK(value_at(folder) == value);
    CHECK(names_in(root / "run") == std::vector<std::string>{"latest"});
  }
  // Files are in the order of the pieces: rank 2 writes the first.
  const std::vector<std::vector<std::string>> contents{
      {"one", "rows[2:3, 0:2]"}, {"rows[0:1, 0:2]"}, {"rows[1:2, 0:2]"}};
  CHECK(names_in(folder).size() == contents.size() + 2);
  for (size_t i = 0; i < contents.size(); ++i) {
    const SafetensorsFile file(folder + "/" + checkpoint_shard_file(i));
    std::vector<std::string> names;
    for (const SafeTensor& tensor : file.tensors()) names.push_back(tensor.name);
    CHECK(names == contents[i]);
  }
}

TEST_CASE("an error in any phase on any rank reaches every rank and names the rank") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  REQUIRE(save(folder, 1).texts == std::vector<std::string>(ranks));
  for (const std::set<int>& bad : std::vector<std::set<int>>{{0}, {1}, {2}, {0, 1}, {1, 2}}) {
    CAPTURE(bad.size(), *bad.begin());
    const auto is_bad = [&](int rank) { return bad.count(rank) > 0; };
    const auto wrong = [&](int rank, std::vector<CheckpointPiece>& pieces) {
      if (is_bad(rank)) pieces[static_cast<size_t>(rank) + 1].data = {};
    };
    check_refused(root.path(), save(folder, 2, {.pieces = wrong}), bad, "\"rows\"");
    // A file blocks the rank's own file, once all ranks know the folder.
    const auto in_the_way = [&](int rank, size_t call) {
      if (rank != 0 || call != 1) return;
      for (const int r : bad) {
        const auto shard = static_cast<uint64_t>((r + 1) % ranks);
        std::ofstream(temporary_in(root.path()) / checkpoint_shard_file(shard)) << "x";
      }
    };
    check_refused(root.path(), save(folder, 2, {.before_call = in_the_way}), bad, "File exists");
  }
  const auto before_commit = [&](int rank, size_t call) {
    if (rank == 0 && call == 2) {
      std::ofstream(temporary_in(root.path()) / checkpoint_index_file) << "x";
    }
  };
  check_refused(root.path(), save(folder, 2, {.before_call = before_commit}), {0}, "File exists");
  CHECK(save(folder, 3).texts == std::vector<std::string>(ranks));
  CHECK(value_at(folder) == 3);
}

TEST_CASE("a checkpoint with a missing or truncated file is not committed") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  REQUIRE(save(folder, 1).texts == std::vector<std::string>(ranks));
  const auto spoil = [&](const std::function<void(const fs::path&)>& how) {
    return [&, how](int rank, size_t call) {
      // After all ranks have written; rank 1 wrote the third file.
      if (rank == 0 && call == 2) how(temporary_in(root.path()) / checkpoint_shard_file(2));
    };
  };
  const auto wait_for = [](const fs::path& file) {
    while (!fs::exists(file) || fs::file_size(file) < 100) std::this_thread::yield();
  };
  const Outcome gone = save(folder, 2, {.before_call = spoil([&](const fs::path& file) {
                                          wait_for(file);
                                          fs::remove(file);
                                        })});
  check_refused(root.path(), gone, {0}, "no such file");
  CHECK_THAT(gone.texts[0],
             Contains("shard-00002.safetensors] the file that rank 1 wrote must have"));
  const Outcome cut = save(folder, 2, {.before_call = spoil([&](const fs::path& file) {
                                         wait_for(file);
                                         fs::resize_file(file, 40);
                                       })});
  check_refused(root.path(), cut, {0}, "Received: 40 bytes");
}

TEST_CASE("a checkpoint whose folder another process removed is not committed") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  REQUIRE(save(folder, 1).texts == std::vector<std::string>(ranks));
  for (const size_t call : {1, 2}) {
    const auto take = [&](int rank, size_t at) {
      if (rank != 0 || at != call) return;
      const fs::path temporary = temporary_in(root.path());
      while (call == 2 && names_in(temporary).size() < 3) std::this_thread::yield();
      CHECK(remove_temporary_folder(temporary, split_checkpoint_path(folder)));
    };
    const Outcome outcome = save(folder, 2, {.before_call = take});
    for (const std::string& text : outcome.texts) CHECK_FALSE(text.empty());
    CHECK(value_at(folder) == 1);
    CHECK(names_in(root / "run") == std::vector<std::string>{"latest"});
  }
}

TEST_CASE("a folder that not all writers see is refused with a helpful error") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  REQUIRE(save(folder, 1).texts == std::vector<std::string>(ranks));
  const auto elsewhere = [&](int rank, const std::string& name) {
    return rank == 2 ? (root / "other/latest").string() : name;
  };
  const Outcome outcome = save(folder, 2, {.folder = elsewhere});
  check_refused(root.path(), outcome, {2}, "rank 2 does not see it");
  CHECK_THAT(outcome.texts[2], Contains("a file system that all processes share"));
  CHECK_FALSE(fs::exists(root / "other"));
}

TEST_CASE("writers with different tensors are refused on all ranks, by rank") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  REQUIRE(save(folder, 1).texts == std::vector<std::string>(ranks));
  const auto other = [&](int rank, std::vector<CheckpointPiece>& pieces) {
    // The other ranks list the files in another order.
    if (rank != 0) std::swap(pieces[1], pieces[2]);
  };
  const Outcome outcome = save(folder, 2, {.pieces = other});
  check_refused(root.path(), outcome, {0, 1, 2}, "on ranks 1 and 2");
}

TEST_CASE("the death of another process leaves only the previous checkpoint") {
  const test::TempFolder root;
  const std::string folder = root / "run/latest";
  for (const size_t call : {1, 2, 3}) {
    REQUIRE(save(folder, 1).texts == std::vector<std::string>(ranks));
    const Outcome outcome = save(folder, 2, {.ends_at = call});
    CHECK(outcome.texts == std::vector<std::string>(ranks, "a process has ended"));
    CHECK(value_at(folder) == (call == 3 ? 2 : 1));
    CHECK(names_in(root / "run") == std::vector<std::string>{"latest"});
  }
}

TEST_CASE("a piece's writer must exist") {
  const test::TempFolder root;
  for (const int writer : {-1, ranks}) {
    const auto other = [&](int, std::vector<CheckpointPiece>& pieces) {
      pieces[0].writer = writer;
    };
    const Outcome outcome = save(root / "run/latest", 2, {.pieces = other});
    for (const std::string& text : outcome.texts) CHECK_THAT(text, Contains("one of 3 writers"));
    CHECK_FALSE(fs::exists(root / "run"));
  }
}

}  // namespace checkpoint_writers_test
