#include <algorithm>
#include <numeric>

#include <tessera/datasets/generator_dataset.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/datasets/pipeline/numbers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace pipeline_stages_test {

using namespace tessera;
using namespace tessera::detail;
using test::epoch_labels;
using test::error_line;
using test::Labels;
using test::NumberRows;
using test::row_labels;

using Numbers = std::vector<int64_t>;

namespace {

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Numbers range(int64_t begin, int64_t end) {
  Numbers numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

}  // namespace

TEST_CASE("rows of a pipeline have no batch axis, batches have one") {
  const DataPipeline rows = NumberRows(5);
  const std::optional<Examples> row = rows.start(0)();
  REQUIRE(row);
  CHECK(row->x[0].sizes() == at::IntArrayRef({2}));
  CHECK(row->y[0].dim() == 0);
  const DataPipeline batches = rows.batch(2);
  CHECK(epoch_labels(batches) == Labels{{0, 1}, {2, 3}, {4}});
  CHECK(batches.start(0)()->x[0].sizes() == at::IntArrayRef({2, 2}));
  CHECK(epoch_labels(rows.batch(2, {.drop_remainder = true})) == Labels{{0, 1}, {2, 3}});
  CHECK(batches.steps() == 3);
  CHECK(batches.input_shapes() == std::vector<Shape>{{2}});
  CHECK(batches.name() == "numbers");
  CHECK(batches.named("mine").name() == "mine");
}

TEST_CASE("take, skip, repeat, concatenate and zip") {
  const DataPipeline rows = NumberRows(5);
  CHECK(row_labels(rows.take(2)) == Numbers{0, 1});
  CHECK(row_labels(rows.take(9)) == range(0, 5));
  CHECK(row_labels(rows.skip(3)) == Numbers{3, 4});
  CHECK(row_labels(rows.skip(9)).empty());
  CHECK(row_labels(rows.skip(1).take(2)) == Numbers{1, 2});
  CHECK(row_labels(rows.take(2).repeat(3)) == Numbers{0, 1, 0, 1, 0, 1});
  CHECK(row_labels(rows.repeat(), 0, 12) == Numbers{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1});
  CHECK(row_labels(rows.take(2).concatenate(rows.skip(4))) == Numbers{0, 1, 4});
  const std::optional<Examples> pair = rows.zip(rows.skip(3)).start(0)();
  REQUIRE(pair);
  CHECK(pair->x.size() == 2);
  CHECK(pair->y[1].item<int64_t>() == 3);
  CHECK(rows.zip(rows.skip(3)).steps() == 2);
  CHECK(rows.repeat().endless());
  CHECK(rows.repeat().batch(2).endless());
  CHECK(rows.repeat().take(7).steps() == 7);
  CHECK(rows.take(0).repeat().steps() == 0);
  CHECK(epoch_labels(rows.batch(2).skip(1).concatenate(rows.batch(3).take(1))) ==
        Labels{{2, 3}, {4}, {0, 1, 2}});
}

TEST_CASE("map and filter get rows before batch and batches after it") {
  const DataPipeline rows = NumberRows(6);
  const auto ten_more = [](Examples element) {
    element.y[0] = element.y[0] + 10;
    return element;
  };
  CHECK(row_labels(rows.map(ten_more)) == range(10, 16));
  CHECK(epoch_labels(rows.batch(4).map(ten_more)) == Labels{{10, 11, 12, 13}, {14, 15}});
  CHECK(epoch_labels(rows.filter(test::is_odd).batch(2)) == Labels{{1, 3}, {5}});
  CHECK(rows.filter(test::is_odd).batch(2).steps() == std::nullopt);
  const auto is_full = [](const Examples& batch) { return batch.rows() == 4; };
  CHECK(epoch_labels(rows.batch(4).filter(is_full)) == Labels{{0, 1, 2, 3}});
  CHECK(row_labels(rows.filter(test::is_odd).repeat(2)) == Numbers{1, 3, 5, 1, 3, 5});
  CHECK(row_labels(rows.filter(test::is_odd).repeat(), 0, 4) == Numbers{1, 3, 5, 1});
  CHECK(row_labels(rows.filter(test::is_odd).concatenate(rows.take(1))) == Numbers{1, 3, 5, 0});
  CHECK(sorted(row_labels(rows.filter(test::is_odd).shuffle())) == Numbers{1, 3, 5});
}

TEST_CASE("a full shuffle has fit's order for the same seed") {
  const NumberRows data(50);
  const DataPipeline pipeline = DataPipeline(data).shuffle({.seed = Seed{7, 0}}).batch(8);
  for (const int64_t epoch : {0, 1, 5}) {
    BatchLoader loader(data, {.batch_size = 8, .shuffle = true, .seed = {7, 0}, .epoch = epoch});
    Labels expected;
    while (const std::optional<Examples> batch = loader.next()) {
      expected.push_back(test::labels_of(*batch));
    }
    CHECK(expected.size() == 7);
    CHECK(epoch_labels(pipeline, epoch) == expected);
  }
}

TEST_CASE("each epoch and repetition is shuffled anew, unless disabled") {
  const DataPipeline rows = NumberRows(20);
  const DataPipeline shuffled = rows.shuffle();
  CHECK(sorted(row_labels(shuffled, 0)) == range(0, 20));
  CHECK(row_labels(shuffled, 0) != row_labels(shuffled, 1));
  CHECK(row_labels(shuffled, 1) == row_labels(shuffled, 1));
  const DataPipeline fixed = rows.shuffle({.reshuffle_each_epoch = false});
  CHECK(row_labels(fixed, 0) == row_labels(fixed, 1));
  const Numbers twice = row_labels(shuffled.repeat(2), 3);
  const Numbers first(twice.begin(), twice.begin() + 20), second(twice.begin() + 20, twice.end());
  CHECK(first == row_labels(shuffled, 3));
  CHECK(sorted(second) == range(0, 20));
  CHECK(first != second);
  CHECK(row_labels(rows.shuffle({.seed = Seed{1, 2}})) !=
        row_labels(rows.shuffle({.seed = Seed{1, 3}})));
}

TEST_CASE("a shuffle with a buffer draws from the next rows") {
  const DataPipeline rows = NumberRows(200);
  const Numbers order = row_labels(rows.shuffle(10));
  CHECK(sorted(order) == range(0, 200));
  CHECK(order != range(0, 200));
  int64_t furthest_back = 0;
  for (int64_t i = 0; i < 200; ++i) {
    CHECK(order[static_cast<size_t>(i)] < i + 10);
    furthest_back = std::max(furthest_back, i - order[static_cast<size_t>(i)]);
  }
  CHECK(furthest_back > 10);
  CHECK(row_labels(rows.shuffle(1)) == range(0, 200));
  CHECK(row_labels(rows.shuffle(200, {.seed = Seed{4, 0}})) ==
        row_labels(rows.shuffle({.seed = Seed{4, 0}})));
}

TEST_CASE("a map's seeds derive from the stage's seed, the epoch and the row") {
  const DataPipeline rows = NumberRows(4);
  const auto seeds_of = [](const DataPipeline& data, int64_t epoch) {
    std::vector<std::pair<int64_t, int64_t>> seeds;
    const BatchFunction next = data.map([&seeds](Examples row, Seed seed) {
                                     seeds.emplace_back(seed.a, seed.b);
                                     return row;
                                   })
                                   .start(epoch);
    while (next()) {
    }
    return seeds;
  };
  const auto first = seeds_of(rows, 0);
  CHECK(first.size() == 4);
  CHECK(first[0] != first[1]);
  CHECK(first == seeds_of(rows, 0));
  CHECK(first != seeds_of(rows, 1));
  // Another stage gets other seeds.
  CHECK(first != seeds_of(rows.take(4), 0));
  const auto skipped = seeds_of(rows.skip(1), 0);
  CHECK(skipped.size() == 3);
}

TEST_CASE("rows are padded to the batch's longest, or to a shape") {
  const DataPipeline texts = DataPipeline(NumberRows(4)).map(test::as_text);
  const auto next = texts.padded_batch(2, {.x_value = -1}).start(0);
  CHECK(at::equal(next()->x[0], at::tensor({0, -1, 1, 1}, at::kLong).reshape({2, 2})));
  CHECK(at::equal(next()->x[0], at::tensor({2, 2, 2, -1, 3, 3, 3, 3}, at::kLong).reshape({2, 4})));
  const DataPipeline fixed = texts.padded_batch(3, {.x_shapes = {{5}}, .y_shapes = {{}}});
  CHECK(fixed.start(0)()->x[0].sizes() == at::IntArrayRef({3, 5}));
  CHECK(fixed.input_shapes() == std::vector<Shape>{{5}});
  CHECK(texts.padded_batch(3).input_shapes() == std::vector<Shape>{{-1}});
  CHECK(texts.padded_batch(3, {.drop_remainder = true}).steps() == 1);
  CHECK(error_line([&] { texts.padded_batch(4, {.x_shapes = {{3}}}).start(0)(); }) ==
        "[numbers, padded_batch at stage 2, batch 0, x] rows fit into (3,). "
        "Received: Long (4,). To fix: pass a larger shape, or truncate the rows.");
  CHECK(error_line([&] { texts.batch(2).start(0)(); }) ==
        "[numbers, batch at stage 2, batch 0, x] rows of a batch have one shape and dtype. "
        "Received: Long (1,) and Long (2,). "
        "To fix: use padded_batch(), or make them equal with map().");
}

TEST_CASE("rows of similar lengths are batched together") {
  const DataPipeline texts = DataPipeline(NumberRows(14)).map(test::as_text);
  // The texts have lengths 1 to 7, twice.
  const DataPipeline buckets =
      texts.bucket_by_length(test::text_length, {.boundaries = {3, 6}, .batch_sizes = {3, 2, 9}});
  CHECK(epoch_labels(buckets) == Labels{{2, 3}, {0, 1, 7}, {4, 9}, {10, 11}, {8}, {5, 6, 12, 13}});
  CHECK(buckets.input_shapes() == std::vector<Shape>{{-1}});
  const auto first = buckets.start(0)();
  CHECK(at::equal(first->x[0], at::tensor({2, 2, 2, 0, 3, 3, 3, 3}, at::kLong).reshape({2, 4})));
  const auto options = [](bool pad, bool drop) {
    return BucketByLengthOptions{.boundaries = {4, 8},
                                 .batch_sizes = {4, 4, 1},
                                 .pad_to_boundary = pad,
                                 .drop_remainder = drop};
  };
  const auto next = texts.bucket_by_length(test::text_length, options(true, true)).start(0);
  CHECK(next()->x[0].sizes() == at::IntArrayRef({4, 7}));
  CHECK(next()->x[0].sizes() == at::IntArrayRef({4, 3}));
  CHECK(next()->x[0].sizes() == at::IntArrayRef({4, 7}));
  CHECK_FALSE(next());
  const auto bucketed = [&](const BucketByLengthOptions& requested) {
    return error_line([&] { texts.bucket_by_length(test::text_length, requested).start(0)(); });
  };
  CHECK(bucketed({.boundaries = {3, 3}, .batch_sizes = {1, 1, 1}}) ==
        "[numbers, bucket_by_length at stage 2] boundaries ascend. Received: (3, 3). "
        "To fix: sort them.");
  CHECK(bucketed({.boundaries = {3}, .batch_sizes = {1}}) ==
        "[numbers, bucket_by_length at stage 2] there are batch sizes of 2 buckets. Received: 1. "
        "To fix: give one more than boundaries.");
  CHECK(bucketed({.boundaries = {3}, .batch_sizes = {1, 1}, .pad_to_boundary = true}) ==
        "[numbers, bucket_by_length at stage 2, row 2] with pad_to_boundary no row is in the last "
        "bucket. Received: length 3. To fix: add a boundary above it.");
}

TEST_CASE("a stream supports the stages that keep its order") {
  const GeneratorDataset stream(
      [] {
        return [i = int64_t{0}]() mutable -> std::optional<Examples> {
          if (i == 5) return std::nullopt;
          return Examples{.x = {at::full({2, 1}, i)}, .y = {at::full({2}, i++, at::kLong)}};
        };
      },
      {.name = "made"});
  const DataPipeline batches = DatasetHandle(stream);
  const auto ten_more = [](Examples batch) {
    batch.y[0] += 10;
    return batch;
  };
  CHECK(epoch_labels(batches.map(ten_more, {.threads = 3}).skip(1).take(3)) ==
        Labels{{11, 11}, {12, 12}, {13, 13}});
  CHECK(epoch_labels(batches.prefetch(2).zip(batches.skip(3))).size() == 2);
  CHECK(batches.steps() == std::nullopt);
  BatchLoader loader(batches.map(ten_more, {.threads = 4}), {.first_step = 3});
  CHECK(test::labels_of(*loader.next()) == Numbers{13, 13});
  CHECK(test::labels_of(*loader.next()) == Numbers{14, 14});
  CHECK_FALSE(loader.next());
  CHECK(error_line([&] { batches.shuffle(); }) ==
        "[made, shuffle at stage 1] any element can be read. Received: a stream of batches. "
        "To fix: pass tensors or a Dataset.");
}

TEST_CASE("stages that do not apply are refused in one line") {
  const DataPipeline rows = NumberRows(5);
  CHECK(error_line([&] { rows.batch(0); }) ==
        "[numbers, batch at stage 1] size is at least 1. Received: 0. To fix: pass more.");
  CHECK(error_line([&] { rows.take(1).map(DataPipeline::Function()); }) ==
        "[DataPipeline, map] there is a function. Received: an empty one. To fix: pass one.");
  CHECK(error_line([&] { rows.batch(2).batch(2); }) ==
        "[numbers, batch at stage 2] the elements are rows. Received: batches. "
        "To fix: batch only once.");
  CHECK(error_line([&] { rows.repeat().shuffle(); }) ==
        "[numbers, shuffle at stage 2] the elements have an end. "
        "Received: repeat() without a count. To fix: put it after this stage.");
  CHECK(error_line([&] { rows.zip(rows.batch(2)); }) ==
        "[numbers, zip at stage 2] both data are rows, or both are batches. "
        "Received: rows and batches. To fix: batch both, or batch after this stage.");
  CHECK(error_line([&] { rows.map(test::with_noise, {.threads = 0}); }) ==
        "[numbers, map at stage 1] threads is at least 1. Received: 0. To fix: pass more.");
  CHECK(error_line([&] { rows.map(test::with_noise, {.whole_batch = true}); }) ==
        "[numbers, map at stage 1] whole_batch is for batches. Received: rows. "
        "To fix: put it after batch().");
  CHECK(error_line([&] { rows.start_at(0, 0, {}); }) ==
        "[numbers] elements are batches. Received: rows. To fix: end the pipeline with batch(32).");
  CHECK(error_line([&] { rows.batch(2).zip(rows.batch(3)).start(0)(); }) ==
        "[numbers, zip at stage 2, batch 0] batches of both have equally many rows. "
        "Received: 2 and 3. To fix: use zip() before batch().");
  CHECK(error_line([&] {
          rows.batch(2)
              .map([](Examples batch) {
                batch.y[0] = batch.y[0].narrow(0, 0, 1);
                return batch;
              })
              .start(0)();
        }) ==
        "[numbers, map at stage 2, batch 0] the function keeps the 2 rows of a batch. "
        "Received: shape (1,). To fix: change the number of rows before batch().");
}

}  // namespace pipeline_stages_test
