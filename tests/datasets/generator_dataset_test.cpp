#include <tessera/datasets/generator_dataset.hpp>

#include <thread>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/batch_loader.hpp>

#include "tests/support/catch.hpp"

namespace generator_dataset_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

/// Returns a stream of batches of 2 rows that hold the batch's number, from 0 on.
GeneratorDataset counting(int64_t count, const GeneratorDatasetOptions& options = {}) {
  return GeneratorDataset(
      [count] {
        return [count, i = int64_t{0}]() mutable -> std::optional<Examples> {
          if (i == count) return std::nullopt;
          return Examples{.x = {at::full({2, 3}, static_cast<double>(i++))}};
        };
      },
      options);
}

std::vector<double> numbers(BatchLoader& loader) {
  std::vector<double> list;
  while (std::optional<Examples> batch = loader.next()) {
    list.push_back(batch->x[0][0][0].item<double>());
  }
  return list;
}

}  // namespace

TEST_CASE("a stream is read from its start in every epoch") {
  const DatasetHandle data = counting(3);
  CHECK(data.input_shapes() == std::vector<Shape>{{3}});
  CHECK(data.name() == "generator");
  for (const int64_t epoch : {0, 1}) {
    BatchLoader loader(data, {.epoch = epoch});
    CHECK(!loader.steps());
    CHECK(numbers(loader) == std::vector<double>{0, 1, 2});
    CHECK_FALSE(loader.next());
  }
}

TEST_CASE("a stream can be limited at both ends") {
  BatchLoader some(counting(5), {.first_step = 1, .steps = 3});
  CHECK(some.steps() == 3);
  CHECK(numbers(some) == std::vector<double>{1, 2});
  BatchLoader told(counting(5, {.steps = 5}), {.steps = 9});
  CHECK(told.steps() == 5);
  BatchLoader early(counting(2), {.steps = 9});
  CHECK(numbers(early).size() == 2);
}

TEST_CASE("a generator's exceptions and invalid batches reach the training thread") {
  const GeneratorDataset bad([] {
    return []() -> std::optional<Examples> { throw FileError("part-3", "readable", "", ""); };
  });
  BatchLoader loader(bad, {});
  CHECK_THROWS_WITH(loader.next(), Contains("[part-3]"));
  const GeneratorDataset uneven([] {
    return []() -> std::optional<Examples> {
      return Examples{.x = {at::zeros({2, 3})}, .y = {at::zeros({3})}};
    };
  });
  BatchLoader other(uneven, {});
  CHECK_THROWS_WITH(other.next(), Contains("[generator, y] all tensors of a batch have its 2"));
}

TEST_CASE("wrong generators are refused") {
  CHECK_THROWS_WITH(GeneratorDataset(nullptr), Contains("[generator] a function starts"));
  CHECK_THROWS_WITH(counting(1, {.steps = 0}), Contains("steps is at least 1. Received: 0."));
  CHECK_THROWS_WITH(counting(0).input_shapes(), Contains("an epoch has batches"));
  const GeneratorDataset empty([] { return BatchFunction(); });
  CHECK_THROWS_WITH(empty.input_shapes(), Contains("an epoch has batches"));
  BatchLoader loader(empty, {});
  CHECK_THROWS_WITH(loader.next(), Contains("[generator] the start of an epoch gives"));
  CHECK_THROWS_WITH(*DatasetHandle(counting(1)), Contains("Received: a stream of batches."));
}

}  // namespace generator_dataset_test
