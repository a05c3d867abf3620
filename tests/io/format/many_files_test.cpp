#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/io/format/checkpoint_writer.hpp>

#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/checkpoint_index.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace many_files_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// More files than a reader keeps open.
constexpr int64_t files = 300;
constexpr int64_t row = 3000;

/// Limits the number of this process's open files for one scope.
class OpenLimit {
 public:
  explicit OpenLimit(rlim_t count) {
    getrlimit(RLIMIT_NOFILE, &old_);
    const rlimit limit{count, old_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OpenLimit() { setrlimit(RLIMIT_NOFILE, &old_); }
  OpenLimit(const OpenLimit&) = delete;
  OpenLimit& operator=(const OpenLimit&) = delete;

 private:
  rlimit old_{};
};

/// Saves a tensor with one file per row; all bytes of a row are its index plus `offset`.
void save(const std::string& folder, int64_t offset) {
  std::vector<std::vector<uint8_t>> rows;
  std::vector<CheckpointPiece> pieces;
  for (int64_t i = 0; i < files; ++i) {
    rows.emplace_back(row, static_cast<uint8_t>(i + offset));
    pieces.push_back({"x", {i, 0}, {i + 1, row}, std::as_bytes(std::span(rows.back()))});
  }
  write_checkpoint(folder, {{"x", "U8", {files, row}}}, pieces, nullptr, {.max_file_bytes = 4096});
}

bool holds(const CheckpointReader& reader, int64_t i, int64_t offset) {
  std::vector<uint8_t> values(row);
  reader.read("x", {i, 0}, {i + 1, row}, std::as_writable_bytes(std::span(values)));
  return values == std::vector<uint8_t>(row, static_cast<uint8_t>(i + offset));
}

}  // namespace

TEST_CASE("a checkpoint may have more files than a process may open") {
  const test::TempFolder root;
  const std::string folder = root / "c";
  save(folder, 0);
  REQUIRE(fs::exists(folder + "/" + checkpoint_shard_file(files - 1)));
  const OpenLimit limit(290);
  const CheckpointReader reader(folder);
  reader.verify();
  for (const int64_t i : {int64_t{0}, int64_t{255}, int64_t{256}, files - 1}) {
    CHECK(holds(reader, i, 0));
  }
}

TEST_CASE("a replaced file of a checkpoint with many files is not read as the old one") {
  const test::TempFolder root;
  const std::string folder = root / "c";
  save(folder, 0);
  const CheckpointReader reader(folder);
  save(folder, 7);
  CHECK(holds(reader, 0, 0));
  CHECK_THROWS_WITH(holds(reader, files - 1, 0), Contains(checkpoint_shard_file(files - 1)));
  CHECK(holds(CheckpointReader(folder), files - 1, 7));
}

}  // namespace many_files_test
