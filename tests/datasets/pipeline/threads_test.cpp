#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <tessera/framework/base/error.hpp>

#include "tests/datasets/pipeline/numbers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace pipeline_threads_test {

using namespace tessera;
using test::epoch_bytes;
using test::error_line;
using test::NumberRows;

namespace {

/// Returns pipelines with every kind of stage, with `threads` threads.
std::vector<DataPipeline> pipelines(int64_t threads, int64_t prefetch) {
  const DataPipeline rows = NumberRows(53);
  const DataPipeline noisy =
      rows.map(test::with_noise, {.threads = threads, .seed = Seed{3, 4}}).shuffle();
  const DataPipeline texts = rows.map(test::as_text, {.threads = threads}).shuffle();
  const BucketByLengthOptions buckets{
      .boundaries = {3, 5}, .batch_sizes = {4, 3, 5}, .threads = threads};
  const std::vector<DataPipeline> all = {
      noisy.batch(8),
      noisy.batch(8).map(test::with_noise, {.threads = threads, .whole_batch = true}),
      noisy.filter(test::is_odd, {.threads = threads}).batch(5).shuffle(3),
      noisy.repeat(3).skip(7).take(90).cache().batch(6),
      texts.padded_batch(7),
      texts.bucket_by_length(test::text_length, buckets),
      rows.zip(noisy).concatenate(noisy.zip(rows)).batch(10),
      rows.repeat().map(test::with_noise, {.threads = threads}).batch(9).take(20)};
  std::vector<DataPipeline> ready;
  for (const DataPipeline& data : all) ready.push_back(data.prefetch(prefetch));
  return ready;
}

/// Waits until `done`, for at most ten seconds.
template <class Done>
bool waited(const Done& done) {
  for (int i = 0; i < 10000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

}  // namespace

TEST_CASE("batches do not depend on the number of threads or on the first step") {
  const std::vector<DataPipeline> expected = pipelines(1, 0);
  for (const int64_t threads : {1, 2, 5}) {
    const std::vector<DataPipeline> actual = pipelines(threads, 3);
    for (size_t i = 0; i < expected.size(); ++i) {
      for (const int64_t epoch : {0, 2}) {
        CAPTURE(threads, i, epoch);
        const std::vector<std::string> expected_bytes = epoch_bytes(expected[i], epoch);
        CHECK(expected_bytes.size() > 4);
        CHECK(epoch_bytes(actual[i], epoch) == expected_bytes);
        const auto half = std::ssize(expected_bytes) / 2;
        // Starts in the middle of an epoch, as a resumed program does.
        CHECK(epoch_bytes(pipelines(threads, 3)[i], epoch, half) ==
              std::vector<std::string>(expected_bytes.begin() + half, expected_bytes.end()));
      }
      if (i != 3 && i != 6) CHECK(epoch_bytes(actual[i], 0) != epoch_bytes(actual[i], 2));
    }
  }
}

TEST_CASE("rows before the first step are not read") {
  const auto data = std::make_shared<NumberRows>(60);
  const DataPipeline batches = DataPipeline(DatasetHandle(data))
                                   .shuffle({.seed = Seed{1, 1}})
                                   .map(test::with_noise, {.threads = 2})
                                   .batch(10);
  const auto rest = epoch_bytes(batches, 4, 4);
  CHECK(rest.size() == 2);
  std::vector<int64_t> read;
  for (const auto& [row, times] : data->take_reads()) {
    CHECK(times == 1);
    read.push_back(row);
  }
  std::vector<int64_t> expected;
  const auto labels = test::epoch_labels(batches, 4);
  for (size_t i = 4; i < 6; ++i) {
    expected.insert(expected.end(), labels[i].begin(), labels[i].end());
  }
  std::sort(expected.begin(), expected.end());
  CHECK(read == expected);
}

TEST_CASE("a map's function runs on all its threads at once") {
  for (const int64_t threads : {1, 3}) {
    std::atomic<int64_t> inside{0}, max_inside{0};
    const auto meet = [&](Examples row) {
      int64_t now = ++inside;
      for (int64_t seen = max_inside; now > seen && !max_inside.compare_exchange_weak(seen, now);) {
      }
      waited([&] { return inside >= threads || max_inside >= threads; });
      --inside;
      return row;
    };
    const DataPipeline batches =
        DataPipeline(NumberRows(24)).map(meet, {.threads = threads}).batch(2);
    CHECK(epoch_bytes(batches, 0).size() == 12);
    CHECK(max_inside == threads);
  }
}

TEST_CASE("no more elements are prefetched than requested, and none after the loader's end") {
  std::atomic<int64_t> made{0};
  const auto count = [&](Examples batch) {
    ++made;
    return batch;
  };
  for (const int64_t threads : {1, 4}) {
    made = 0;
    const DataPipeline batches =
        DataPipeline(NumberRows(1000)).batch(1).map(count, {.threads = threads}).prefetch(6);
    {
      // The loader has one batch ready and holds the next.
      BatchLoader loader(batches, {});
      CHECK(loader.next());
      CHECK(waited([&] { return made == 8; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK(made == 8);
    }
    const int64_t at_end = made;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(made == at_end);
  }
}

TEST_CASE("an error in a thread ends the epoch at that row and names the stage") {
  const auto fails = [](Examples row) {
    const int64_t label = row.y[0].item<int64_t>();
    if (label == 7) throw std::runtime_error("no seven\nnor more");
    if (label == 9) throw FileError("nine.png", "a picture", "", "");
    if (label == 12) row.x[0] = row.x[0].reshape({7});
    return row;
  };
  for (const int64_t threads : {1, 3}) {
    CAPTURE(threads);
    const DataPipeline rows = NumberRows(20);
    const auto line = [&](int64_t skipped, int64_t batch_size) {
      const DataPipeline data =
          rows.skip(skipped).map(fails, {.threads = threads}).batch(batch_size);
      BatchLoader loader(data, {});
      int64_t batches = 0;
      const std::string text = error_line([&] {
        while (loader.next()) ++batches;
      });
      CHECK(error_line([&] { loader.next(); }) == text);
      return std::to_string(batches) + " " + text;
    };
    CHECK(line(0, 2) ==
          "3 [numbers, map at stage 2, row 7] the function makes an element. "
          "Received: no seven. To fix: look at what it is given.");
    CHECK(line(8, 1) == "1 [numbers, map at stage 2, row 1, nine.png] a picture.");
    CHECK_THAT(line(10, 1), Catch::Contains("2 [numbers, map at stage 2, row 2] the function makes "
                                            "an element. Received: shape '[7]' is invalid"));
  }
}

TEST_CASE("a dataset that is not concurrent is read by one thread at a time") {
  struct Alone final : Dataset {
    int64_t size() const override { return 40; }
    Examples get(std::span<const int64_t> rows) const override {
      if (++inside > 1) together = true;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      --inside;
      return {.x = {at::zeros({std::ssize(rows), 1})}};
    }
    std::vector<Shape> input_shapes() const override { return {{1}}; }
    mutable std::atomic<int> inside{0};
    mutable std::atomic<bool> together{false};
  };
  const auto data = std::make_shared<Alone>();
  const auto same = [](Examples row) { return row; };
  const DataPipeline batches = DataPipeline(DatasetHandle(data)).map(same, {.threads = 4}).batch(2);
  CHECK(epoch_bytes(batches, 0).size() == 20);
  CHECK_FALSE(data->together);
}

}  // namespace pipeline_threads_test
