#include <filesystem>

#include <tessera/framework/base/error.hpp>

#include "tests/datasets/pipeline/numbers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"

namespace pipeline_cache_test {

using namespace tessera;
using test::epoch_bytes;
using test::error_line;
using test::NumberRows;
using test::TempFolder;

namespace {

/// Returns the total number of reads.
int64_t reads(const NumberRows& data) {
  int64_t all = 0;
  for (const auto& [row, times] : data.take_reads()) all += times;
  return all;
}

}  // namespace

TEST_CASE("a cache replaces reading the data and holds the first epoch's elements") {
  const TempFolder folder;
  const std::string path = (folder / "rows.cache").string();
  const auto data = std::make_shared<NumberRows>(20);
  const DataPipeline noisy = DataPipeline(DatasetHandle(data)).map(test::with_noise).shuffle();
  const std::vector<std::string> first = epoch_bytes(noisy.batch(6), 0);
  data->take_reads();
  for (const bool in_file : {false, true}) {
    CAPTURE(in_file);
    const DataPipeline cached = in_file ? noisy.cache(path) : noisy.cache();
    const DataPipeline batches = cached.batch(6);
    // Any epoch may be read first, as in a resumed run.
    CHECK(epoch_bytes(batches, 3) == first);
    // A cache file reads three rows to verify that the data is the same.
    CHECK(reads(*data) == (in_file ? 23 : 20));
    CHECK(epoch_bytes(batches, 0) == first);
    CHECK(epoch_bytes(cached.shuffle().batch(6), 1) != epoch_bytes(cached.shuffle().batch(6), 2));
    CHECK(reads(*data) == 0);
  }
  const DataPipeline whole = noisy.batch(6);
  CHECK(epoch_bytes(whole.cache(), 1) == first);
  CHECK(epoch_bytes(whole.cache((folder / "batches.cache").string()), 1) == first);
}

TEST_CASE("a cache file holds the values that negated views show") {
  const TempFolder folder;
  const auto views = [](Examples row) {
    const at::Tensor number = at::complex(row.x[0].to(at::kFloat), row.x[0].to(at::kFloat) + 1);
    row.x = {at::imag(number.conj())};
    return row;
  };
  const DataPipeline made = DataPipeline(NumberRows(6)).map(views);
  const DataPipeline batches = made.cache((folder / "rows.cache").string()).batch(3);
  CHECK(epoch_bytes(batches, 0) == epoch_bytes(made.batch(3), 0));
}

TEST_CASE("in-place changes of a cached row do not persist") {
  const auto add = [](Examples row) {
    row.x[0] += 1;
    return row;
  };
  const DataPipeline data = DataPipeline(NumberRows(6)).cache().map(add).batch(3);
  const auto first = epoch_bytes(data, 0);
  CHECK(first == epoch_bytes(data, 1));
  CHECK(first == epoch_bytes(DataPipeline(NumberRows(6)).map(add).batch(3), 0));
}

TEST_CASE("a cache file of other data is refused, also a damaged one") {
  const TempFolder folder;
  const std::string path = (folder / "rows.cache").string();
  const auto cached = [&](int64_t rows) { return DataPipeline(NumberRows(rows)).cache(path); };
  const auto line = [](const DataPipeline& data) {
    return error_line([&] { epoch_bytes(data.batch(4), 0); });
  };
  const auto good = epoch_bytes(cached(10).batch(4), 0);
  CHECK(good.size() == 3);
  // The folder holds no other file.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  const std::string other = "[numbers, cache at stage 1] \"" + path +
                            "\" holds the elements of these data. Received: those of other data or "
                            "stages. To fix: delete it to have it written anew, or name another "
                            "file.";
  CHECK(line(cached(11)) == other);
  const auto doubled = [](Examples row) {
    row.x[0] = row.x[0] * 2;
    return row;
  };
  const auto same = [](Examples row) { return row; };
  const DataPipeline rows = NumberRows(10);
  CHECK_THAT(line(rows.map(doubled).cache(path)), Catch::Contains("those of other data or stages"));
  CHECK_THAT(line(rows.map(same).cache(path)), Catch::Contains("those of other data or stages"));
  CHECK(epoch_bytes(cached(10).batch(4), 0) == good);

  const std::string bytes = test::read_file(path);
  const auto damaged = [&](std::string text) {
    test::write_file(path, text);
    return line(cached(10));
  };
  std::string flipped = bytes;
  flipped[100] = static_cast<char>(flipped[100] ^ 1);
  CHECK_THAT(damaged(flipped), Catch::Contains("rows.cache, byte 0] element 0 with its checksum. "
                                               "Received: other bytes."));
  CHECK_THAT(damaged(bytes.substr(0, bytes.size() - 1)),
             Catch::Contains("a complete cache file. Received: another ending."));
  CHECK_THAT(damaged(bytes.substr(0, 50)),
             Catch::Contains("a complete cache file. Received: 50 bytes."));
  flipped = bytes;
  flipped[bytes.size() - 128 - 8] = 'x';
  CHECK_THAT(damaged(flipped), Catch::Contains("offsets of checksum "));
  flipped = bytes;
  flipped[bytes.size() - 128 + 3] = 'x';
  CHECK_THAT(damaged(flipped), Catch::Contains("offsets of "));
  std::filesystem::remove(path);
  CHECK(epoch_bytes(cached(10).batch(4), 0) == good);
}

TEST_CASE("a cache file that cannot be written is an error that names it") {
  const DataPipeline data = DataPipeline(NumberRows(3)).cache("/no/such/folder/rows.cache");
  CHECK_THAT(error_line([&] { epoch_bytes(data.batch(2), 0); }),
             Catch::Contains("/no/such/folder/rows.cache"));
}

}  // namespace pipeline_cache_test
