#include <tessera/framework/data/batch_loader.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/mesh.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"

namespace batch_loader_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

/// Row i is (10 i, 10 i + 1) with label i. Counts reads and can be made to fail at a row.
class Numbers final : public Dataset {
 public:
  explicit Numbers(int64_t size, int64_t fails_at = -1) : size_(size), fails_at_(fails_at) {}
  int64_t size() const override { return size_; }
  Examples get(std::span<const int64_t> rows) const override {
    Examples all{.x = {at::empty({int64_t(rows.size()), 2}, at::kLong)},
                 .y = {at::empty({int64_t(rows.size())}, at::kLong)}};
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == fails_at_) throw FileError("numbers", "a readable row", str(rows[i]), "");
      all.x[0].data_ptr<int64_t>()[2 * i] = 10 * rows[i];
      all.x[0].data_ptr<int64_t>()[2 * i + 1] = 10 * rows[i] + 1;
      all.y[0].data_ptr<int64_t>()[i] = rows[i];
    }
    ++reads;
    threads = at::get_num_threads();
    return all;
  }
  std::vector<Shape> input_shapes() const override { return {{2}}; }

  mutable std::atomic<int> reads{0};
  mutable std::atomic<int> threads{0};

 private:
  int64_t size_;
  int64_t fails_at_;
};

/// Returns one row less than requested.
class Short final : public Dataset {
 public:
  int64_t size() const override { return 8; }
  Examples get(std::span<const int64_t> rows) const override {
    return {.x = {at::zeros({int64_t(rows.size()) - 1, 2})}};
  }
  std::vector<Shape> input_shapes() const override { return {{2}}; }
};

/// Returns the labels of each batch of the loader.
std::vector<std::vector<int64_t>> batches(const Dataset& data, const BatchLoaderOptions& options) {
  BatchLoader loader(data, options);
  std::vector<std::vector<int64_t>> result;
  while (std::optional<Examples> batch = loader.next()) {
    const int64_t* first = batch->y[0].data_ptr<int64_t>();
    result.emplace_back(first, first + batch->rows());
    CHECK(difference(batch->x[0].select(1, 0), batch->y[0] * 10) == "");
  }
  CHECK_FALSE(loader.next());
  return result;
}

std::vector<int64_t> joined(const std::vector<std::vector<int64_t>>& parts) {
  std::vector<int64_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

using Parts = std::vector<std::vector<int64_t>>;

}  // namespace

TEST_CASE("batches come in order, and the last one may be short") {
  CHECK(batches(Numbers(7), {.batch_size = 3}) == Parts{{0, 1, 2}, {3, 4, 5}, {6}});
  CHECK(batches(Numbers(6), {.batch_size = 3}) == Parts{{0, 1, 2}, {3, 4, 5}});
  CHECK(batches(Numbers(2), {.batch_size = 5}) == Parts{{0, 1}});
  CHECK(batches(Numbers(0), {.batch_size = 5}).empty());
}

TEST_CASE("an epoch can be limited at both ends") {
  const Numbers data(7);
  CHECK(batches(data, {.batch_size = 3, .steps = 2}) == Parts{{0, 1, 2}, {3, 4, 5}});
  CHECK(batches(data, {.batch_size = 3, .first_step = 1}) == Parts{{3, 4, 5}, {6}});
  CHECK(batches(data, {.batch_size = 3, .first_step = 1, .steps = 2}) == Parts{{3, 4, 5}});
  CHECK(batches(data, {.batch_size = 3, .first_step = 3}).empty());
  CHECK(batches(data, {.batch_size = 3, .steps = 0}).empty());
  CHECK(BatchLoader(data, {.batch_size = 3, .first_step = 2, .steps = 9}).steps() == 3);
  CHECK(BatchLoader(data, {.batch_size = 3, .steps = 2}).steps() == 2);
}

TEST_CASE("a shuffle is the permutation of seed and epoch") {
  const Numbers data(100);
  const BatchLoaderOptions options{.batch_size = 8, .shuffle = true, .seed = {4, 2}, .epoch = 1};
  const std::vector<int64_t> order = joined(batches(data, options));
  const Permutation permutation(100, fold_in({4, 2}, 1));
  REQUIRE(order.size() == 100);
  for (int64_t i = 0; i < 100; ++i) CHECK(order[size_t(i)] == permutation(i));
  CHECK(std::set<int64_t>(order.begin(), order.end()).size() == 100);
  CHECK(joined(batches(data, options)) == order);
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  BatchLoaderOptions other = options;
  other.epoch = 2;
  CHECK(joined(batches(data, other)) != order);
  other = options;
  other.seed = {4, 3};
  CHECK(joined(batches(data, other)) != order);
  other = options;
  other.first_step = 5;
  const std::vector<int64_t> rest = joined(batches(data, other));
  CHECK(rest == std::vector<int64_t>(order.begin() + 40, order.end()));
}

TEST_CASE("exactly one batch is prefetched") {
  using namespace std::chrono_literals;
  const Numbers data(100);
  BatchLoader loader(data, {.batch_size = 10});
  const auto settles_at = [&](int reads) {
    for (int i = 0; i < 500 && data.reads < reads; ++i) std::this_thread::sleep_for(10ms);
    std::this_thread::sleep_for(30ms);
    return data.reads == reads;
  };
  CHECK(settles_at(1));
  loader.next();
  CHECK(settles_at(2));
  loader.next();
  loader.next();
  CHECK(settles_at(4));
}

TEST_CASE("a loader can be destroyed in the middle of an epoch") {
  const Numbers data(1000);
  for (int taken = 0; taken < 40; ++taken) {
    BatchLoader loader(data, {.batch_size = 3});
    for (int i = 0; i < taken % 4; ++i) CHECK(loader.next());
  }
}

TEST_CASE("a dataset's exception reaches the training thread after the batches before it") {
  const Numbers data(10, 6);
  BatchLoader loader(data, {.batch_size = 3});
  CHECK(loader.next()->rows() == 3);
  CHECK(loader.next()->rows() == 3);
  CHECK_THROWS_WITH(loader.next(), Contains("[numbers] a readable row. Received: 6"));
  CHECK_THROWS_AS(loader.next(), FileError);
}

TEST_CASE("a dataset that returns a wrong number of rows is refused") {
  const Short data;
  BatchLoader loader(data, {.batch_size = 3});
  CHECK_THROWS_WITH(loader.next(), Contains("[data, x] all tensors of a batch have its 3 rows"));
}

TEST_CASE("reading starts no compute threads of its own") {
  const int before = at::get_num_threads();
  const Numbers data(10);
  batches(data, {.batch_size = 3});
  CHECK(data.threads == 1);
  CHECK(at::get_num_threads() == before);
}

TEST_CASE("wrong loader options are refused") {
  const Numbers data(7);
  CHECK_THROWS_WITH(BatchLoader(data, {.batch_size = 0}), Contains("[batch_size]"));
  CHECK_THROWS_AS(BatchLoader(data, {.batch_size = -2}), ConfigError);
  CHECK_THROWS_WITH(BatchLoader(data, {.batch_size = 3, .first_step = 4}),
                    Contains("[first_step] an epoch of 3 steps") && Contains("Received: 4"));
  CHECK_THROWS_AS(BatchLoader(data, {.batch_size = 3, .first_step = -1}), ConfigError);
  CHECK_THROWS_WITH(BatchLoader(data, {.batch_size = 3, .steps = -1}), Contains("[steps]"));
}

TEST_CASE("batches hold the same rows on every mesh, sharded along its batch dimension") {
  const Numbers data(11);
  for (const MeshDims& dims : {MeshDims{{"batch", 1}}, MeshDims{{"batch", 3}},
                               MeshDims{{"batch", 2}, {"model", 2}}, MeshDims{{"model", 2}}}) {
    const Mesh mesh = create_mesh(dims);
    const LayoutMap layouts(mesh);
    const AxisSpec rows = mesh.find("batch") >= 0 ? AxisSpec("batch") : AxisSpec(unsharded);
    const Permutation order(11, fold_in({1, 2}, 0));
    BatchLoader loader(data, {.batch_size = 4, .shuffle = true, .seed = {1, 2}});
    for (int64_t step = 0; step < loader.steps(); ++step) {
      CAPTURE(mesh.describe(), step);
      std::vector<int64_t> expected;
      for (int64_t i = 4 * step; i < std::min<int64_t>(4 * step + 4, 11); ++i) {
        expected.push_back(order(i));
      }
      const at::Tensor y = at::tensor(expected, at::kLong);
      const Batch batch = pack_batch(*loader.next(), layouts);
      CHECK(batch.rows == y.numel());
      CHECK(batch.y[0].layout() == Layout({rows}, mesh));
      CHECK(test::wrong_shards(batch.y[0], y) == "");
      REQUIRE(batch.x.size() == 1);
      CHECK(batch.x[0].layout() == Layout({rows, unsharded}, mesh));
      CHECK(test::wrong_shards(batch.x[0], at::stack({y * 10, y * 10 + 1}, 1)) == "");
      CHECK(batch.sample_weight.empty());
    }
  }
}

TEST_CASE("a layout map's data entries shard a batch") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"feature", 2}});
  LayoutMap layouts(mesh);
  layouts.set_data("x", {"batch", "feature"});
  const at::Tensor x = at::arange(12).reshape({3, 4});
  const at::Tensor weight = at::rand({3});
  const Batch batch = pack_batch({.x = {x.clone(), x.clone()}, .sample_weight = {weight}}, layouts);
  CHECK(batch.rows == 3);
  CHECK(batch.y.empty());
  REQUIRE(batch.x.size() == 2);
  for (const DTensor& input : batch.x) {
    CHECK(input.layout() == Layout({"batch", "feature"}, mesh));
    CHECK(test::wrong_shards(input, x) == "");
  }
  CHECK(batch.sample_weight[0].layout() == Layout({"batch"}, mesh));
  CHECK(test::wrong_shards(batch.sample_weight[0], weight) == "");
  const at::Tensor images = at::zeros({3, 28, 28});
  CHECK_THROWS_WITH(pack_batch({.x = {images}}, layouts),
                    Contains("[data.x] the data layout has rank 2, the batch has rank 3") &&
                        Contains("To fix: "));
}

TEST_CASE("a batch that no one else holds is sharded into views") {
  const BlockPolicyScope per_shard(BlockPolicy::per_shard);
  const LayoutMap layouts(create_mesh({{"batch", 2}}));
  const Numbers data(8);
  BatchLoader loader(data, {.batch_size = 8});
  std::optional<Examples> examples = loader.next();
  const void* memory = examples->x[0].data_ptr();
  const Batch batch = pack_batch(std::move(*examples), layouts);
  CHECK(batch.x[0].blocks()[0].data_ptr() == memory);
}

}  // namespace batch_loader_test
