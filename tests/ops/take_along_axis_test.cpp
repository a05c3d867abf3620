#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace take_along_axis_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using at::Tensor;

Function along(int64_t axis) {
  return
      [axis](const std::vector<DTensor>& in) { return ops::take_along_axis(in[0], in[1], axis); };
}

/// Integers in [lo, hi).
Tensor indices(Shape shape, int64_t lo, int64_t hi) {
  return random_values({std::move(shape), at::kLong, double(lo), double(hi)}, 6);
}

}  // namespace

TEST_CASE("take_along_axis takes elements by an index for each row, in every layout") {
  const Tensor x = at::randn({4, 5, 3}, at::kDouble);
  const Tensor middle = indices({4, 7, 3}, 0, 5), last = indices({4, 5, 2}, 0, 3);
  CHECK(wrong_values({x, middle}, along(1), x.gather(1, middle)) == "");
  CHECK(wrong_values({x, last}, along(-1), x.gather(2, last)) == "");
  const Tensor back = indices({4, 7, 3}, -5, 5);
  REQUIRE(back.lt(0).any().item<bool>());
  CHECK(wrong_values({x, back}, along(1), x.gather(1, back.remainder(5))) == "");
  CHECK(wrong_values({x.gt(0), back}, along(1), x.gt(0).gather(1, back.remainder(5))) == "");
  const Tensor integers = at::randint(-9, 9, {4, 5}, at::kLong), rows = indices({2, 5}, 0, 4);
  CHECK(wrong_values({integers, rows}, along(0), integers.gather(0, rows)) == "");
  CHECK(wrong_values({integers, rows.to(at::kInt)}, along(0), integers.gather(0, rows)) == "");
}

TEST_CASE("axes of one element broadcast to the other operand's") {
  const Tensor x = at::randn({4, 5}, at::kDouble), one = indices({1, 3}, -5, 5);
  const Tensor there = one.remainder(5).expand({4, 3});
  CHECK(wrong_values({x, one}, along(1), x.gather(1, there)) == "");
  CHECK(wrong_gradients({x, one}, along(1)) == "");
  const Tensor row = x.narrow(0, 0, 1), many = indices({3, 2}, 0, 5);
  CHECK(wrong_values({row, many}, along(1), row.expand({3, 5}).gather(1, many)) == "");
  CHECK(wrong_gradients({row, many}, along(1)) == "");
}

TEST_CASE("an index without axes after the axis selects rows") {
  const Tensor x = at::randn({4, 5, 3}, at::kDouble), rows = indices({4, 7, 1}, -5, 5);
  const Tensor there = rows.remainder(5).expand({4, 7, 3});
  CHECK(wrong_values({x, rows}, along(1), x.gather(1, there)) == "");
  CHECK(wrong_gradients({x, rows}, along(1)) == "");
  CHECK(wrong_values({x, indices({1, 1, 1}, 2, 3)}, along(0), x.slice(0, 2, 3)) == "");
  CHECK(wrong_gradients({x, indices({1, 7, 1}, 0, 5)}, along(1)) == "");
  CHECK(wrong_gradients({x.slice(2, 0, 0), rows}, along(1)) == "");
  CHECK(wrong_gradients({x, rows.slice(1, 0, 0)}, along(1)) == "");
}

TEST_CASE("gradients of take_along_axis accumulate over repeated indices") {
  const Tensor x = at::randn({4, 3}, at::kDouble);
  CHECK(wrong_gradients({x, indices({4, 6}, -3, 3)}, along(1)) == "");
  CHECK(wrong_gradients({x, indices({7, 3}, 0, 4)}, along(0)) == "");
  CHECK(wrong_gradients({x[0], at::tensor({1, 1, -2}, at::kLong)}, along(0)) == "");
}

TEST_CASE("a sharded axis is not gathered, and its gradient does not communicate") {
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor x = pack(at::randn({4, 6}), Layout({"x", "y"}, mesh));
  const DTensor index = pack(indices({4, 3}, 0, 6), Layout({"x", unsharded}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  GradientTape tape;
  tape.watch(x);
  const DTensor y = ops::take_along_axis(x, index, 1);
  CHECK(y.layout() == Layout({"x", unsharded}, mesh).with_partial(2, Reduce::sum));
  CHECK(tape.gradient(y, x).layout() == x.layout());
  CHECK(log.to_string() == "");
}

TEST_CASE("an index out of range is named, from either end") {
  const Mesh mesh = virtual_mesh({3});
  const BlockPolicyScope policy(BlockPolicy::per_device);
  for (const LayoutSpec& spec : {LayoutSpec{unsharded, unsharded}, {unsharded, "x"}}) {
    const DTensor x = pack(at::randn({2, 5}), Layout(spec, mesh));
    const auto take = [&](const Tensor& index) {
      return ops::take_along_axis(x, pack(index, Layout::replicated(mesh, 2)), 1);
    };
    CHECK_NOTHROW(take(at::tensor({4, -5}, at::kLong).view({2, 1})));
    CHECK_THROWS_WITH(take(at::tensor({4, -6}, at::kLong).view({2, 1})),
                      Contains("[take_along_axis] indices lie in [-5, 5). Received: -6 at (1, 0)"));
    CHECK_THROWS_WITH(take(at::tensor({5, 0}, at::kLong).view({2, 1})),
                      Contains("Received: 5 at (0, 0)"));
  }
}

TEST_CASE("take_along_axis refuses invalid arguments") {
  const Mesh mesh = virtual_mesh({2});
  const auto value = [&](const Tensor& t) { return pack(t, Layout::replicated(mesh, t.dim())); };
  const DTensor x = value(at::randn({4, 3})), index = value(at::zeros({4, 2}, at::kLong));
  CHECK_THROWS_AS(ops::take_along_axis(x, index, 2), ShapeError);
  CHECK_THROWS_AS(ops::take_along_axis(x, index, 0), ShapeError);
  CHECK_THROWS_AS(ops::take_along_axis(x, value(at::zeros({4}, at::kLong)), 0), ShapeError);
  CHECK_THROWS_AS(ops::take_along_axis(value(at::randn({4, 0})), index, 1), ShapeError);
  CHECK_THROWS_AS(ops::take_along_axis(x, value(at::zeros({4, 2})), 1), ConfigError);
}

}  // namespace take_along_axis_test
