#include <array>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/strategy/strategies.hpp>

#include "tests/strategy/guide_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/warnings.hpp"

namespace distributed_dataset_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::strategy;
using Catch::Contains;

namespace {

TensorDataset numbers(int64_t begin, int64_t end) {
  return TensorDataset({.x = {at::arange(begin, end, at::kFloat).reshape({end - begin, 1})},
                        .y = {at::arange(begin, end)}});
}

/// Yields batches of given rows, one a step; a negative number throws.
class Rows final : public StreamDataset {
 public:
  explicit Rows(std::vector<int64_t> rows, float value = 0)
      : rows_(std::move(rows)), value_(value) {}
  BatchFunction start(int64_t) const override {
    return [rows = rows_, value = value_, step = size_t{0}]() mutable -> std::optional<Examples> {
      if (step == rows.size()) return std::nullopt;
      if (rows[step] < 0) throw FileError("part-2", "a file", "none", "");
      return Examples{.x = {at::full({rows[step++], 2}, value)}};
    };
  }
  std::vector<Shape> input_shapes() const override { return {{2}}; }

 private:
  std::vector<int64_t> rows_;
  float value_;
};

/// 16 rows; records which are read.
class Noted final : public Dataset {
 public:
  explicit Noted(std::shared_ptr<std::vector<float>> read) : read_(std::move(read)) {}
  int64_t size() const override { return 16; }
  Examples get(std::span<const int64_t> rows) const override {
    for (int64_t row : rows) read_->push_back(static_cast<float>(row));
    return {.x = {at::ones({std::ssize(rows), 1})}};
  }
  std::vector<Shape> input_shapes() const override { return {{1}}; }

 private:
  std::shared_ptr<std::vector<float>> read_;
};

/// Returns the numbers in each batch's x.
std::vector<std::vector<float>> epoch(const DistributedDataset& data) {
  std::vector<std::vector<float>> batches;
  for (const Batch& batch : data) {
    const at::Tensor x = batch.x[0].full().flatten().contiguous();
    batches.emplace_back(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
  }
  return batches;
}

using Epoch = std::vector<std::vector<float>>;

/// Reads a dataset made by `make` on two processes of two replicas each.
void on_two_ranks(const DatasetFunction& make,
                  const std::function<void(int rank, const DistributedDataset&)>& check) {
  run_ranks(2, [&](int rank, const auto& communicator) {
    const MeshStrategy strategy(rank_mesh({{"batch", 4}}, communicator));
    check(rank, strategy.distribute_datasets_from_function(make, {.batch_size = 2}));
  });
}

}  // namespace

TEST_CASE("a distributed dataset yields global batches, sharded over replicas") {
  const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}});
  const auto data = strategy.experimental_distribute_dataset(numbers(0, 14), {.batch_size = 6});
  const Epoch expected = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {12, 13}};
  CHECK(epoch(data) == expected);
  CHECK(epoch(data) == expected);
  for (const Batch& batch : data) {
    CHECK(batch.x[0].layout().num_shards(0) == 4);
    CHECK(batch.x[0].mesh() == strategy.mesh());
    CHECK(batch.rows == batch.y[0].size(0));
  }
  const auto first = data.iterate(), second = data.iterate();
  CHECK(first->next()->rows == 6);
  CHECK(first->next()->x[0].full()[0].item<float>() == 6);
  CHECK(second->next()->x[0].full()[0].item<float>() == 0);
  CHECK(first->next()->rows == 2);
  CHECK_FALSE(first->next());
  CHECK_FALSE(first->next());
}

TEST_CASE("each epoch of a shuffled dataset has its own order, equal on any mesh") {
  const DistributeOptions options = {.batch_size = 16, .shuffle = true, .seed = {1, 2}};
  const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}});
  const auto data = strategy.experimental_distribute_dataset(numbers(0, 16), options);
  const Epoch first = epoch(data), second = epoch(data);
  CHECK(first != second);
  const auto again = default_strategy().experimental_distribute_dataset(numbers(0, 16), options);
  CHECK(epoch(again) == first);
  const DistributedDataset copy = again;
  CHECK(epoch(copy) == second);
}

TEST_CASE("streams are distributed batch by batch") {
  const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}});
  std::vector<int64_t> rows;
  for (const Batch& batch : strategy.experimental_distribute_dataset(Rows({3, 1, 4}))) {
    rows.push_back(batch.rows);
  }
  CHECK(rows == std::vector<int64_t>{3, 1, 4});
  const auto tensors = strategy.experimental_make_tensor_dataset({.x = {at::ones({5, 1})}});
  CHECK(epoch(strategy.experimental_distribute_dataset(tensors)) == Epoch{{1, 1, 1, 1, 1}});
}

TEST_CASE("per-replica batches of a function become global ones") {
  const MirroredStrategy strategy({.devices = {"cpu:0", "cpu:1"}});
  int calls = 0;
  const auto data = strategy.distribute_datasets_from_function(
      [&](const InputContext& context) -> DatasetHandle {
        ++calls;
        CHECK(context.num_input_pipelines == 1);
        CHECK(context.input_pipeline_id == 0);
        CHECK(context.num_replicas_in_sync == 2);
        CHECK(context.get_per_replica_batch_size(6) == 3);
        CHECK_THROWS_WITH(context.get_per_replica_batch_size(5),
                          Contains("a multiple of the 2 replicas. Received: 5"));
        return numbers(0, 10);
      },
      {.batch_size = 3});
  const Epoch expected = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9}};
  CHECK(epoch(data) == expected);
  CHECK(epoch(data) == expected);
  CHECK(calls == 1);
}

TEST_CASE("the batches of several processes are joined in rank order") {
  const auto make = [](const InputContext& context) -> DatasetHandle {
    expect(context.num_input_pipelines == 2 && context.num_replicas_in_sync == 4, "context");
    return numbers(context.input_pipeline_id * 100, context.input_pipeline_id * 100 + 7);
  };
  CHECK_NOTHROW(on_two_ranks(make, [](int, const DistributedDataset& data) {
    const Epoch expected = {{0, 1, 2, 3, 100, 101, 102, 103}, {4, 5, 6, 104, 105, 106}};
    for (int repeat = 0; repeat < 2; ++repeat) expect(epoch(data) == expected, "rows");
  }));
}

TEST_CASE("an epoch ends everywhere with the first process that runs out of data") {
  const Warnings warnings;
  const auto make = [](const InputContext& context) -> DatasetHandle {
    return Rows(std::vector<int64_t>(context.input_pipeline_id == 0 ? 8 : 4, 2));
  };
  CHECK_NOTHROW(on_two_ranks(
      make, [](int, const DistributedDataset& data) { expect(epoch(data).size() == 2, "steps"); }));
  CHECK(warnings.text() ==
        "Warning: distribute_datasets_from_function: after 2 steps the data continue on rank 0; "
        "ended "
        "on rank 1; all processes end the epoch here\n");
}

TEST_CASE("rows needed by replicas of other processes are fetched from there") {
  for (const auto& [first, second] :
       {std::pair{7, 6}, {6, 7}, {1, 8}, {8, 1}, {5, 3}, {2, 2}, {4, 2}, {1, 1}}) {
    Epoch expected;
    for (int64_t begin = 0; begin < std::min(first, second); begin += 4) {
      expected.emplace_back();
      for (int64_t i = begin; i < std::min<int64_t>(begin + 4, first); ++i) {
        expected.back().push_back(static_cast<float>(i));
      }
      for (int64_t i = begin; i < std::min<int64_t>(begin + 4, second); ++i) {
        expected.back().push_back(static_cast<float>(100 + i));
      }
    }
    const auto make = [rows = std::array<int, 2>{first, second}](const InputContext& context) {
      const int64_t begin = context.input_pipeline_id * 100;
      return DatasetHandle(numbers(begin, begin + rows[size_t(context.input_pipeline_id)]));
    };
    const Warnings warnings;
    const std::string rows = str(first, " and ", second, " rows");
    CHECK_NOTHROW(on_two_ranks(make, [&](int, const DistributedDataset& data) {
      expect(epoch(data) == expected, rows);
      for (const Batch& batch : data) {
        expect(batch.y[0].size(0) == batch.rows && batch.x[0].layout().num_shards(0) == 4, "cut");
      }
    }));
  }
}

TEST_CASE("tensors of different shapes are an error on every process") {
  const auto make = [](const InputContext& context) -> DatasetHandle {
    if (context.input_pipeline_id == 0) return numbers(0, 8);
    return Rows({2, 2});
  };
  std::vector<std::string> errors(2);
  CHECK_NOTHROW(on_two_ranks(make, [&](int rank, const DistributedDataset& data) {
    try {
      epoch(data);
    } catch (const ShapeError& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  }));
  CHECK_THAT(errors[0],
             Contains("all batches of a step may differ in their number of rows only. Received: x "
                      "float32 (1,), y int64 () on rank 0; x float32 (2,) on rank 1"));
  CHECK(errors[1] == errors[0]);
}

TEST_CASE("an error on one process ends the others, too") {
  const auto make = [](const InputContext& context) -> DatasetHandle {
    if (context.input_pipeline_id == 1) throw FileError("part-1", "a file", "none", "");
    return numbers(0, 8);
  };
  std::vector<std::string> errors(2);
  CHECK_NOTHROW(run_ranks(2, [&](int rank, const auto& communicator) {
    const MeshStrategy strategy(rank_mesh({{"batch", 2}}, communicator));
    try {
      strategy.distribute_datasets_from_function(make);
    } catch (const FileError& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  }));
  CHECK_THAT(errors[0], Contains("[distribute_datasets_from_function]"));
  CHECK_THAT(errors[0], Contains("part-1"));
  CHECK(errors[1] == "[part-1] a file. Received: none.");
}

TEST_CASE("a failing batch on one process ends the others, too") {
  const auto make = [](const InputContext& context) -> DatasetHandle {
    return Rows({2, 2, 2, context.input_pipeline_id == 0 ? -1 : 2});
  };
  std::vector<std::string> errors(2);
  std::vector<int> steps(2);
  CHECK_NOTHROW(on_two_ranks(make, [&](int rank, const DistributedDataset& data) {
    try {
      for (const Batch& batch : data) steps[static_cast<size_t>(rank)] += batch.rows == 8;
    } catch (const FileError& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  }));
  CHECK(steps == std::vector<int>{1, 1});
  CHECK_THAT(errors[0], Contains("[part-2]"));
  CHECK_THAT(errors[1], Contains("[distribute_datasets_from_function] every process has a batch"));
  CHECK_THAT(errors[1], Contains("[part-2]"));
}

TEST_CASE("each process reads only the rows of its own replicas") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const MeshStrategy strategy(rank_mesh({{"batch", 4}}, communicator));
    const auto read = std::make_shared<std::vector<float>>();
    const auto data = strategy.experimental_distribute_dataset(Noted(read), {.batch_size = 8});
    int64_t rows = 0;
    for (const Batch& batch : data) rows += batch.rows;
    expect(rows == 16, "two global batches");
    const std::vector<float> expected = rank == 0 ? std::vector<float>{0, 1, 2, 3, 8, 9, 10, 11}
                                                  : std::vector<float>{4, 5, 6, 7, 12, 13, 14, 15};
    expect(*read == expected, "own rows");
  }));
}

TEST_CASE("distribution refuses invalid options at once") {
  const Strategy& strategy = default_strategy();
  CHECK_THROWS_AS(strategy.experimental_distribute_dataset({}), ConfigError);
  CHECK_THROWS_WITH(strategy.experimental_distribute_dataset(numbers(0, 2), {.batch_size = 0}),
                    Contains("batch_size"));
  CHECK_THROWS_WITH(strategy.distribute_datasets_from_function({}),
                    Contains("[distribute_datasets_from_function] a function makes the data"));
  const auto nothing = [](const InputContext&) { return DatasetHandle(); };
  CHECK_THROWS_AS(strategy.distribute_datasets_from_function(nothing), ConfigError);
}

}  // namespace distributed_dataset_test
