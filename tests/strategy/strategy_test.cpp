#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/strategy/strategies.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include "tests/strategy/guide_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thread_communicator.hpp"

namespace strategy_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using namespace tessera::strategy;
using Catch::Contains;

namespace {

MirroredStrategy mirrored(int n) {
  std::vector<std::string> devices;
  for (int i = 0; i < n; ++i) devices.push_back(str("cpu:", i));
  return MirroredStrategy({.devices = devices});
}

DTensor cut(const Strategy& strategy, const at::Tensor& full) {
  return pack(full, Layout::batch_sharded(strategy.mesh(), "batch", full.dim()));
}

DTensor same(const Strategy& strategy, const at::Tensor& full) {
  return pack(full, Layout::replicated(strategy.mesh(), full.dim()));
}

bool equal(const DTensor& value, const at::Tensor& full) {
  return at::allclose(value.full().to(at::kDouble), full.to(at::kDouble));
}

}  // namespace

TEST_CASE("outside of scopes the default strategy is a pass-through") {
  CHECK_FALSE(has_strategy());
  const Strategy& strategy = get_strategy();
  CHECK(strategy.name() == "DefaultStrategy");
  CHECK(strategy.num_replicas_in_sync() == 1);
  CHECK(strategy.describe() == "Using DefaultStrategy with devices (cpu:0)");
  CHECK(strategy.run([](int a, int b) { return a + b; }, 1, 2) == 3);
  CHECK(strategy.reduce("SUM", 1.) == 1);
  const auto scope = strategy.scope();
  CHECK_FALSE(has_strategy());
  CHECK(default_mesh() == create_mesh({{"batch", 1}}));
  const DTensor rows = cut(strategy, at::tensor({1., 2., 3.}));
  CHECK(equal(strategy.reduce("MEAN", rows), at::tensor({1., 2., 3.})));
  CHECK(equal(strategy.reduce("MEAN", rows, 0), at::tensor(2.)));
  CHECK(strategy.experimental_local_results(rows).size() == 1);
}

TEST_CASE("a scope determines the mesh of variables and models until it ends") {
  const MirroredStrategy strategy = mirrored(4);
  CHECK(strategy.num_replicas_in_sync() == 4);
  {
    const auto scope = strategy.scope();
    CHECK(&get_strategy() == &strategy);
    CHECK(default_mesh() == strategy.mesh());
    CHECK(Variable("v", ones({2})).layout().mesh() == strategy.mesh());
    const auto again = strategy.scope();
    CHECK(&get_strategy() == &strategy);
  }
  CHECK_FALSE(has_strategy());
  CHECK(default_mesh().size() == 1);
  strategy.run([&] { CHECK(&get_strategy() == &strategy); });
  CHECK_FALSE(has_strategy());
  CHECK_THROWS(strategy.run([] { throw ConfigError("f", "", "", ""); }));
  CHECK_FALSE(has_strategy());
}

TEST_CASE("scopes of different strategies cannot be nested") {
  const MirroredStrategy two = mirrored(2), four = mirrored(4);
  const auto inside_default = default_strategy().scope();
  const auto scope = two.scope();
  CHECK_THROWS_WITH(four.scope(),
                    "[MirroredStrategy::scope] scopes of several strategies do not nest. Received: "
                    "scope() inside that of MirroredStrategy. To fix: leave the other scope "
                    "first.");
  CHECK_THROWS_AS(four.run([] {}), StateError);
  CHECK_THROWS_AS(default_strategy().run([] {}), StateError);
  CHECK(&get_strategy() == &two);
  CHECK(default_mesh() == two.mesh());
}

TEST_CASE("reduce sums what replicas hold") {
  const MirroredStrategy strategy = mirrored(2);
  const at::Tensor full = at::arange(12, at::kDouble).reshape({4, 3});
  const DTensor rows = cut(strategy, full);
  const at::Tensor shards = full.slice(0, 0, 2) + full.slice(0, 2, 4);
  const DTensor sum = strategy.reduce(ReduceOp::sum, rows);
  CHECK(sum.layout().is_fully_replicated());
  CHECK(equal(sum, shards));
  CHECK(equal(strategy.reduce("MEAN", rows), shards / 2));
  CHECK(equal(strategy.reduce("SUM", rows, 0), full.sum(0)));
  CHECK(equal(strategy.reduce("MEAN", rows, 0), full.mean(0)));
  CHECK(equal(strategy.reduce("MEAN", rows, -1), full.mean(1)));
  CHECK(strategy.reduce("SUM", rows, 1).layout().is_fully_replicated());
}

TEST_CASE("reduce returns a value that all replicas share, whether it was resolved or not") {
  for (int replicas : {1, 2, 3, 4}) {
    CAPTURE(replicas);
    const MirroredStrategy strategy = mirrored(replicas);
    const at::Tensor full = at::arange(12, at::kDouble);
    for (const bool resolved : {false, true}) {
      CAPTURE(resolved);
      const DTensor total = ops::sum(cut(strategy, full)), mean = ops::mean(cut(strategy, full));
      if (resolved) {
        resolve(total);
        resolve(mean);
      }
      if (replicas > 1) CHECK(total.layout().is_partial() != resolved);
      for (const std::string op : {"SUM", "MEAN"}) {
        CHECK(strategy.reduce(op, total).item() == 66);
        CHECK(strategy.reduce(op, mean).item() == Approx(5.5));
        // A second time: reading a value does not change it.
        CHECK(strategy.reduce(op, total).item() == 66);
      }
    }
    for (const std::string op : {"SUM", "MEAN"}) {
      CHECK(strategy.reduce(op, same(strategy, at::tensor(3.))).item() == 3);
      CHECK(equal(strategy.reduce(op, same(strategy, full)), full));
      CHECK(strategy.reduce(op, 2.5) == 2.5);
    }
  }
}

TEST_CASE("the mean loss of a step is the MEAN over its replicas") {
  const at::Tensor x = at::linspace(-1, 2, 36, at::kDouble).view({12, 3});
  const at::Tensor y = at::linspace(0, 1, 12, at::kDouble).view({12, 1});
  for (int replicas : {1, 2, 3, 4}) {
    CAPTURE(replicas);
    const MirroredStrategy strategy = mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({Input({3}, {.dtype = "float64"}),
                            Dense(1, {.kernel_initializer = "ones", .dtype = "float64"})});
    const double expected = (x.sum(1, true) - y).square().mean().item<double>();
    for (const Batch& batch :
         strategy.experimental_distribute_dataset(DatasetHandle(x, y), {.batch_size = 12})) {
      const auto step = [&] { return ops::mean(ops::square(model(batch.x[0]) - batch.y[0])); };
      CHECK(strategy.reduce("MEAN", strategy.run(step)).item() == Approx(expected));
    }
  }
}

TEST_CASE("reduce with an axis counts every row once in any sharding") {
  const MirroredStrategy strategy = mirrored(4);
  const at::Tensor full = at::arange(6, at::kDouble);
  CHECK(strategy.reduce("SUM", cut(strategy, full), 0).item() == 15);
  CHECK(strategy.reduce("MEAN", cut(strategy, full), 0).item() == 2.5);
}

TEST_CASE("reduce is recorded on tapes") {
  const MirroredStrategy strategy = mirrored(2);
  const DTensor rows = cut(strategy, at::tensor({1., 2., 3., 4.}));
  GradientTape tape;
  tape.watch(rows);
  const DTensor loss = ops::sum(strategy.reduce("MEAN", rows) * 3.);
  CHECK(equal(tape.gradient(loss, rows), at::full({4}, 1.5)));
}

TEST_CASE("reduce and gather refuse invalid arguments") {
  const MirroredStrategy strategy = mirrored(4);
  const DTensor rows = cut(strategy, at::ones({6, 2}));
  CHECK_THROWS_WITH(
      strategy.reduce("SUM", rows),
      "[reduce] without an axis, all 4 replicas must hold equally many rows. Received: 6 rows. "
      "To fix: pass an axis: 0 sums over all rows.");
  CHECK_THROWS_WITH(strategy.reduce("SUM", rows, 2),
                    "[reduce, axis] axis is one of the 2 of the value, (6, 2). Received: 2. To "
                    "fix: name one of them.");
  CHECK_THROWS_AS(strategy.reduce("SUM", rows, -3), ShapeError);
  CHECK_THROWS_WITH(strategy.reduce("SUMM", rows),
                    "[reduce, reduce_op] must be \"SUM\" or \"MEAN\". Received: \"SUMM\". To "
                    "fix: write \"SUM\".");
  CHECK_THROWS_AS(strategy.reduce("MAX", 1.), ConfigError);
  CHECK_THROWS_AS(strategy.reduce("SUM", DTensor()), StateError);
  CHECK_THROWS_WITH(
      strategy.gather(rows, 1),
      Contains("[gather] the value must be sharded over the replicas along axis 1. Received: "
               "(batch, unsharded)"));
  CHECK_THROWS_WITH(strategy.gather(rows, 2), Contains("[gather, axis] axis is one of the 2"));
  CHECK_THROWS_AS(strategy.gather(ops::sum(rows), 0), ShapeError);
}

TEST_CASE("gather concatenates what replicas hold") {
  const MirroredStrategy strategy = mirrored(4);
  const at::Tensor full = at::arange(12, at::kDouble).reshape({6, 2});
  const DTensor rows = cut(strategy, full);
  at::Tensor joined = strategy.gather(rows, 0);
  CHECK(at::equal(joined, full));
  joined.zero_();
  CHECK(equal(rows, full));
  CHECK(at::equal(strategy.gather(rows, -2), full));
  const OneDeviceStrategy one("cpu:0");
  CHECK(at::equal(one.gather(same(one, full), 1), full));
}

TEST_CASE("local results are the shards of replicas, or the replicated value") {
  const MirroredStrategy strategy = mirrored(4);
  const DTensor rows = cut(strategy, at::arange(6, at::kDouble));
  const auto shards = strategy.experimental_local_results(rows);
  REQUIRE(shards.size() == 4);
  CHECK(at::equal(at::cat(shards), at::arange(6, at::kDouble)));
  CHECK(shards[0].size(0) == 1);
  const auto sums = strategy.experimental_local_results(ops::sum(rows));
  REQUIRE(sums.size() == 4);
  CHECK(sums[2].item<double>() == 15);
  const MeshStrategy model_too(create_mesh({{"batch", 2}, {"model", 2}}));
  CHECK(model_too.experimental_local_results(same(model_too, at::ones({3}))).size() == 2);
  CHECK(model_too.num_replicas_in_sync() == 2);
}

TEST_CASE("every process has the full reduced or gathered value, and its own local results") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const MeshStrategy strategy(rank_mesh({{"batch", 4}}, communicator));
    const at::Tensor full = at::arange(8, at::kDouble);
    const DTensor rows = cut(strategy, full);
    expect(strategy.reduce("SUM", rows, 0).item() == 28, "sum");
    expect(strategy.reduce("MEAN", ops::sum(rows)).item() == 28, "a value that replicas share");
    const at::Tensor shards = strategy.reduce("SUM", rows).full();
    expect(at::equal(shards, at::tensor({12., 16.})), "sum of shards");
    expect(at::equal(strategy.gather(rows, 0), full), "gathered");
    const auto mine = strategy.experimental_local_results(rows);
    expect(mine.size() == 2 && mine[0][0].item<double>() == rank * 4, "own shards");
  }));
}

TEST_CASE("TPUStrategy says why it is not supported") {
  CHECK_THROWS_WITH(TPUStrategy("grpc://10.0.0.1:8470"),
                    "[TPUStrategy] devices are CPUs and GPUs, as libtorch without XLA has no TPU. "
                    "Received: TPU \"grpc://10.0.0.1:8470\". To fix: use MirroredStrategy on one "
                    "host, MultiWorkerMirroredStrategy on several.");
  CHECK_THROWS_AS(TPUStrategy(), ConfigError);
}

}  // namespace strategy_test
