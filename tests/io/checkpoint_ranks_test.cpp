#include <tessera/tessera.hpp>

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/cluster/internal/collective_error.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>
#include <tessera/framework/io/format/checkpoint_path.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/files.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/warnings.hpp"

namespace checkpoint_ranks_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::checkpoint_layouts;
using test::checkpoint_model;
using test::Everything;

namespace {

using CommunicatorRef = std::shared_ptr<Communicator>;

constexpr int64_t devices = 8;

const std::vector<std::string> kinds{"data", "model", "spatial", "mixed"};
const std::vector<int> rank_counts{1, 2, 4, 8};

/// Returns the model on this rank's share of the eight devices.
ModelHandle model_of(const std::string& kind, const CommunicatorRef& communicator) {
  const Mesh mesh = test::rank_mesh(test::checkpoint_mesh(kind, devices), communicator);
  return checkpoint_model(checkpoint_layouts(kind, mesh));
}

CheckpointIndex index_of(const std::string& folder) {
  const std::string path = folder + "/" + checkpoint_index_file;
  return parse_checkpoint_index(read_file(path), path);
}

/// Returns the bytes that this thread has written so far.
uint64_t bytes_written() {
  std::ifstream file("/proc/thread-self/io");
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "wchar:") return value;
  }
  return 0;
}

/// Saves on `ranks` ranks; returns the bytes that each wrote, including the index.
std::vector<uint64_t> save_on(int ranks, const std::string& kind, const std::string& folder) {
  std::vector<uint64_t> bytes(static_cast<size_t>(ranks));
  test::run_ranks(ranks, [&](int rank, const CommunicatorRef& communicator) {
    const ModelHandle model = model_of(kind, communicator);
    test::fill(model, 5);
    const uint64_t before = bytes_written();
    Checkpoint(model).save(folder);
    bytes[static_cast<size_t>(rank)] = bytes_written() - before;
  });
  return bytes;
}

Variable sharded(const std::string& name, double value, const CommunicatorRef& communicator) {
  const Mesh mesh = test::rank_mesh({{"x", communicator->size()}}, communicator);
  return Variable(name, filled({8, 1000}, value, at::kFloat, Layout({"x", unsharded}, mesh)));
}

template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("256 pairs of processes and layouts restore each other's saves bit for bit") {
  const test::TempFolder folder;
  for (const std::string& kind : kinds) {
    for (const int ranks : rank_counts) save_on(ranks, kind, folder / str(kind, ranks));
  }
  const ModelHandle one = checkpoint_model(checkpoint_layouts("data", 1));
  test::fill(one, 5);
  const Everything expected(one);
  int pairs = 0;
  for (const std::string& kind : kinds) {
    for (const int ranks : rank_counts) {
      test::run_ranks(ranks, [&](int rank, const CommunicatorRef& communicator) {
        const ModelHandle model = model_of(kind, communicator);
        for (const std::string& from : kinds) {
          for (const int writers : rank_counts) {
            test::fill(model, 6);
            Checkpoint(model).restore(folder / str(from, writers));
            const std::string wrong = Everything(model).difference(expected);
            test::expect(wrong.empty(), str(from, writers, " to ", kind, ranks, ": ", wrong));
            if (rank == 0) ++pairs;
          }
        }
      });
    }
  }
  CHECK(pairs == 256);
}

TEST_CASE("each process writes its own shards, and its share of the replicas") {
  const test::TempFolder folder;
  for (const std::string& kind : kinds) {
    for (const int ranks : rank_counts) {
      CAPTURE(kind, ranks);
      const std::string path = folder / str(kind, ranks);
      const std::vector<uint64_t> bytes = save_on(ranks, kind, path);
      const CheckpointIndex index = index_of(path);
      // The tensors are small, so there is one file per writer.
      CHECK(index.shards.size() == static_cast<size_t>(ranks));
      uint64_t all = 0, largest = 0, most = 0;
      for (const StoredTensor& stored : index.tensors) {
        std::set<uint64_t> shards;
        for (const StoredPiece& piece : stored.pieces) {
          const uint64_t size = checkpoint_bytes(stored.tensor, piece.area);
          all += size;
          largest = std::max(largest, size);
          shards.insert(piece.shard);
        }
        const bool is_cut = kind == "model" && stored.tensor.name == "hidden_1/kernel";
        if (is_cut) CHECK(shards.size() == static_cast<size_t>(ranks));
      }
      for (const CheckpointShard& shard : index.shards) most = std::max(most, shard.bytes);
      constexpr uint64_t header = 8192;
      CHECK(most < all / static_cast<uint64_t>(ranks) + largest + header);
      const uint64_t of_index = read_file(path + "/" + checkpoint_index_file).size();
      for (size_t rank = 0; rank < bytes.size(); ++rank) {
        CHECK(bytes[rank] > 0);
        CHECK(bytes[rank] < most + (rank == 0 ? of_index + header : 1));
      }
    }
  }
}

TEST_CASE("asynchronous saves of several processes have the state at the call") {
  const test::TempFolder folder;
  const auto run = [&](int, const CommunicatorRef& communicator) {
    const ModelHandle model = model_of("mixed", communicator);
    Checkpoint checkpoint(model), other(model);
    for (int round = 0; round < 5; ++round) {
      test::fill(model, round);
      const Everything then(model);
      checkpoint.save(folder / "async", {.asynchronous = true});
      // A second save at the same time, and a step that runs concurrently.
      other.save(folder / "other", {.asynchronous = true});
      test::fill(model, 100 + round);
      test::expect(!Everything(model).difference(then).empty(), "the weights did not change");
      checkpoint.wait();
      other.wait();
      for (const char* name : {"async", "other"}) {
        checkpoint.restore(folder / name);
        test::expect(Everything(model).difference(then).empty(), "another state was saved");
      }
    }
  };
  CHECK_NOTHROW(test::run_ranks(4, run));
}

TEST_CASE("an error of one process ends a save on all, and the previous checkpoint stays") {
  for (const bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    const test::TempFolder folder;
    std::vector<std::string> texts(3);
    std::vector<std::set<int>> named(3);
    test::run_ranks(3, [&](int rank, const CommunicatorRef& communicator) {
      const auto at = static_cast<size_t>(rank);
      Variable w = sharded("w", 1, communicator);
      Checkpoint checkpoint({w});
      checkpoint.save(folder / "one");
      w.assign(filled(w.shape(), 2, at::kFloat, w.layout()));
      texts[at] = error_of([&] {
        try {
          // Rank 1's file system lacks the folder that rank 0 makes.
          checkpoint.save(rank == 1 ? folder / "elsewhere/one" : folder / "one",
                          {.asynchronous = asynchronous});
          checkpoint.wait();
        } catch (const RankFailures& error) {
          for (const auto& [failed, text] : error.failures()) named[at].insert(failed);
          throw;
        }
      });
      checkpoint.restore(folder / "one");
      test::expect(w.value().full().sum().item<double>() == 8000, "another checkpoint");
      checkpoint.save(folder / "one");
    });
    CHECK_THAT(texts[1], Contains("elsewhere") && Contains("rank 1 does not see it"));
    for (const size_t at : {0, 2}) {
      CHECK_THAT(texts[at], Contains("an error on rank 1: "));
      CHECK(named[at] == std::set<int>{1});
    }
    CHECK(named[1].empty());
    CHECK_FALSE(exists(folder / "elsewhere"));
  }
}

TEST_CASE("if one process cannot read a checkpoint, all use the previous one") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  std::vector<std::string> from(2), last(2);
  const test::Warnings warnings;
  test::run_ranks(2, [&](int rank, const CommunicatorRef& communicator) {
    const auto at = static_cast<size_t>(rank);
    Variable w = sharded("w", 0, communicator);
    CheckpointManager manager(Checkpoint({w}), directory);
    for (int64_t step = 1; step < 4; ++step) {
      w.assign(filled(w.shape(), static_cast<double>(step), at::kFloat, w.layout()));
      manager.save(step);
    }
    communicator->gather("written", "");
    if (rank == 0) {
      // Damages the half of "w" that only rank 1 reads.
      const std::string file = directory + "/step-000003/" + checkpoint_shard_file(1);
      std::string bytes = test::read_file(file);
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      test::write_file(file, bytes);
    }
    communicator->gather("spoilt", "");
    from[at] = manager.restore_latest().value_or("");
    test::expect(w.value().full().sum().item<double>() == 16000, "not of step 2");
    manager.save(4);
    last[at] = manager.latest().value_or("");
    CheckpointManager strict(Checkpoint({w}), rank == 0 ? directory : directory + "/none",
                             {.strict = true});
    const std::string text = error_of([&] { strict.restore_latest(); });
    test::expect(
        text.find(rank == 0 ? "an error on rank 1: " : "/none/step-000004") != std::string::npos,
        "a process went on alone: " + text);
  });
  CHECK(from == std::vector<std::string>(2, directory + "/step-000002"));
  CHECK(last == std::vector<std::string>(2, directory + "/step-000004"));
  const std::string all = warnings.text();
  CHECK_THAT(all, Contains("step-000003") && Contains("an error on rank 1: "));
  CHECK(std::count(all.begin(), all.end(), '\n') == 1);
  CHECK_FALSE(exists(directory + "/step-000003"));
}

TEST_CASE("one run at a time saves into a directory") {
  const test::TempFolder folder;
  const std::string directory = folder / "run";
  const Checkpoint checkpoint({Variable("w", filled({4}, 1))});
  const auto is_free = [&] { return try_lock_folder(directory).valid(); };
  {
    CheckpointManager manager(checkpoint, directory), second(checkpoint, directory);
    manager.save(1);
    second.save(2);
    CHECK_FALSE(is_free());
  }
  CHECK(is_free());
  const FileDescriptor other_run = try_lock_folder(directory);
  CheckpointManager manager(checkpoint, directory);
  CHECK(manager.restore_latest() == directory + "/step-000002");
  CHECK_THROWS_WITH(manager.save(3), Contains("one run at a time saves its checkpoints here"));
  CHECK_FALSE(exists(directory + "/step-000003"));
}

}  // namespace checkpoint_ranks_test
