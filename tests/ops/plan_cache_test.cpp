#include <tessera/framework/ops/engine/dispatch.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/propagate.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace plan_cache_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

DTensor value(const Shape& shape, const Layout& layout) {
  return pack(random_values({shape}, 1), layout);
}

/// Returns the number of plans that a function makes.
template <class Function>
int64_t made(const Function& function) {
  const int64_t before = plan_stats().made;
  function();
  return plan_stats().made - before;
}

}  // namespace

TEST_CASE("the same operation on the same shardings is planned once") {
  const Mesh mesh = virtual_mesh({4});
  const Layout cut = Layout::batch_sharded(mesh, "x", 2), replicated = Layout::replicated(mesh, 2);
  const DTensor a = value({8, 3}, cut), b = value({3, 5}, replicated);
  CHECK(made([&] { ops::matmul(a, b); }) == 1);
  CHECK(made([&] { ops::matmul(a, b); }) == 0);
  // Other tensors of the same shape, dtype and layout, on a new equal mesh.
  const Mesh again = virtual_mesh({4});
  const DTensor c = value({8, 3}, Layout::batch_sharded(again, "x", 2));
  CHECK(made([&] { ops::matmul(c, b); }) == 0);
  CHECK(made([&] { ops::sum(a, {0}); }) == 1);
  CHECK(made([&] { ops::sum(a, {0}); }) == 0);
}

TEST_CASE("everything that a plan depends on is part of its key") {
  const Mesh mesh = virtual_mesh({4});
  const DTensor a = value({8, 6}, Layout::batch_sharded(mesh, "x", 2));
  ops::sum(a, {0});
  CHECK(made([&] { ops::sum(a, {1}); }) == 1);
  CHECK(made([&] { ops::sum(a, {0}, true); }) == 1);
  CHECK(made([&] { ops::sum(value({8, 7}, a.layout()), {0}); }) == 1);
  CHECK(made([&] { ops::sum(value({8, 6}, Layout::replicated(mesh, 2)), {0}); }) == 1);
  const DTensor half = pack(random_values({{8, 6}, at::kFloat}, 1), a.layout());
  CHECK(made([&] { ops::sum(half, {0}); }) == 1);
  {
    const BlockPolicyScope scope(BlockPolicy::per_device);
    const DTensor blocks = value({8, 6}, a.layout());
    CHECK(made([&] { ops::sum(blocks, {0}); }) == 1);
    CHECK(made([&] { ops::sum(blocks, {0}); }) == 0);
  }
  const DTensor parameter = value({8, 6}, a.layout());
  parameter.set_tag(std::make_shared<VariableTag>(VariableTag{DTensor::next_id()}));
  CHECK(made([&] { ops::sum(parameter, {0}); }) == 1);
  CHECK(made([&] { ops::sum(a, {0}); }) == 0);
}

TEST_CASE("a plan that fails throws each time") {
  const Mesh mesh = virtual_mesh({2});
  const DTensor a = value({2, 3}, Layout::replicated(mesh, 2));
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(ops::matmul(a, a), ShapeError);
    CHECK_THROWS_AS(a + value({2, 4}, a.layout()), ShapeError);
  }
  const DTensor elsewhere = value({2, 3}, Layout::replicated(virtual_mesh({3}), 2));
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH(a + elsewhere, Catch::Contains("copy_to_mesh"));
    CHECK_THROWS_WITH(a + DTensor(), Catch::Contains("operand 1 is an empty DTensor"));
  }
}

TEST_CASE("each thread has its own plans") {
  const Mesh mesh = virtual_mesh({2});
  const DTensor a = value({2, 3}, Layout::batch_sharded(mesh, "x", 2));
  ops::exp(a);
  int64_t elsewhere = 0;
  std::thread([&] { elsewhere = made([&] { ops::exp(a); }); }).join();
  CHECK(elsewhere == 1);
  CHECK(made([&] { ops::exp(a); }) == 0);
}

TEST_CASE("planning runs no operation") {
  const Mesh mesh = virtual_mesh({2});
  const Layout cut = Layout::inner_sharded(mesh, "x", 2),
               rows = Layout::batch_sharded(mesh, "x", 2);
  const Propagation plan =
      plan_op(*find_op("add"), find_op("add")->samples()[0].op.get(),
              {intern({4, 4}, at::kFloat, cut), intern({4, 4}, at::kFloat, rows)});
  CHECK(plan.outputs[0] == cut);
  CHECK(to_string(plan) == "(unsharded, x) , (unsharded, x) -> (unsharded, x)");
  CHECK(plan.bytes > 0);
}

}  // namespace plan_cache_test
