#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace window_test {

using namespace tessera;
using namespace tessera::test;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

Function part(int64_t axis, int64_t begin, int64_t size) {
  return [=](const Inputs& in) { return ops::slice(in[0], axis, begin, size); };
}

Function padded(int64_t axis, int64_t before, int64_t after, double value) {
  return [=](const Inputs& in) { return ops::pad(in[0], axis, before, after, value); };
}

Function joined(int64_t axis) {
  return [axis](const Inputs& in) { return ops::concat(in, axis); };
}

}  // namespace

TEST_CASE("slice takes any interval of any axis in every layout") {
  const Tensor x = at::randn({7, 5}, at::kDouble);
  for (int64_t begin : {0, 1, 3, 6}) {
    for (int64_t size : {0, 1, 7 - int(begin)}) {
      INFO(begin << " and " << size);
      CHECK(wrong_values({x}, part(0, begin, size), x.narrow(0, begin, size)) == "");
    }
  }
  CHECK(wrong_values({x}, part(-1, 2, 2), x.narrow(1, 2, 2)) == "");
  CHECK(wrong_gradients({x}, part(0, 2, 4)) == "");
  CHECK(wrong_gradients({x}, part(1, 4, 1)) == "");
}

TEST_CASE("pad fills both ends in every layout") {
  const Tensor x = at::randn({3, 2}, at::kDouble);
  CHECK(wrong_values({x}, padded(0, 2, 0, 0), at::constant_pad_nd(x, {0, 0, 2, 0}, 0)) == "");
  CHECK(wrong_values({x}, padded(1, 1, 6, -1.5), at::constant_pad_nd(x, {1, 6}, -1.5)) == "");
  CHECK(wrong_values({at::empty({0, 2}, at::kDouble)}, padded(0, 1, 2, 3),
                     at::full({3, 2}, 3, at::kDouble)) == "");
  CHECK(wrong_gradients({x}, padded(0, 3, 1, 0)) == "");
  CHECK(wrong_gradients({x}, padded(1, 1, 1, 2)) == "");
}

TEST_CASE("concat joins tensors of any extents in every layout") {
  const Tensor a = at::randn({2, 3}, at::kDouble), b = at::randn({4, 3}, at::kDouble);
  const Tensor none = at::empty({0, 3}, at::kDouble);
  CHECK(wrong_values({a, b}, joined(0), at::cat({a, b}, 0)) == "");
  CHECK(wrong_values({none, b, a}, joined(0), at::cat({b, a}, 0)) == "");
  CHECK(wrong_values({a.t(), b.t(), a.t()}, joined(-1), at::cat({a.t(), b.t(), a.t()}, 1)) == "");
  CHECK(wrong_gradients({a, b}, joined(0)) == "");
}

TEST_CASE("split and unstack undo concat and stack") {
  const Tensor x = at::randn({6, 3}, at::kDouble), y = at::randn({6, 3}, at::kDouble);
  for (int64_t i : {0, 1, 2}) {
    CHECK(wrong_values(
              {x}, [i](const Inputs& in) { return ops::split(in[0], 3, 0)[size_t(i)]; },
              x.narrow(0, 2 * i, 2)) == "");
    CHECK(wrong_values(
              {x}, [i](const Inputs& in) { return ops::unstack(in[0], 1)[size_t(i)]; },
              x.select(1, i)) == "");
  }
  for (int64_t axis : {0, 1, 2, -1}) {
    CHECK(wrong_values(
              {x, y}, [axis](const Inputs& in) { return ops::stack(in, axis); },
              at::stack({x, y}, axis)) == "");
  }
  CHECK(wrong_gradients({x, y}, [](const Inputs& in) { return ops::stack(in, 1); }) == "");
  const auto middle = [](const Inputs& in) { return ops::unstack(in[0], -1)[1]; };
  CHECK(wrong_gradients({x}, middle) == "");
}

TEST_CASE("windows over axes that are not sharded cost nothing") {
  const Mesh mesh = virtual_mesh({2});
  const Layout layout({"x", unsharded}, mesh);
  const DTensor x = pack(at::randn({4, 6}), layout);
  CommLog log;
  const CommLogScope scope(log);
  CHECK(ops::slice(x, 1, 2, 3).layout() == layout);
  CHECK(ops::pad(x, 1, 2, 3).layout() == layout);
  CHECK(ops::concat({x, x}, 1).layout() == layout);
  CHECK(log.to_string() == "");
}

TEST_CASE("invalid slices, pads and parts are refused") {
  const DTensor x = one_device(at::randn({6, 3})), row = one_device(at::randn({3}));
  CHECK_THROWS_AS(ops::slice(x, 0, 4, 3), ShapeError);
  CHECK_THROWS_AS(ops::slice(x, 0, -1, 2), ShapeError);
  CHECK_THROWS_AS(ops::slice(x, 0, 1, std::numeric_limits<int64_t>::max()), ShapeError);
  CHECK_THROWS_AS(ops::slice(x, 2, 0, 1), ShapeError);
  CHECK_THROWS_AS(ops::pad(x, 0, -1, 0), ShapeError);
  CHECK_THROWS_AS(ops::split(x, 4, 0), ShapeError);
  CHECK_THROWS_AS(ops::split(x, 0, 0), ShapeError);
  CHECK_THROWS_AS(ops::split(x, 2, 5), ShapeError);
  CHECK_THROWS_AS(ops::concat(std::vector<DTensor>{}, 0), ShapeError);
  CHECK_THROWS_AS(ops::concat({x, row}, 0), ShapeError);
  CHECK_THROWS_AS(ops::concat({x, one_device(at::randn({6, 4}))}, 0), ShapeError);
  CHECK_THROWS_AS(ops::concat({row, one_device(at::ones({3}, at::kLong))}, 0), ConfigError);
  CHECK_THROWS_AS(ops::stack(std::vector<DTensor>{}, 0), ShapeError);
  CHECK_THROWS_AS(ops::stack({x, row}, 0), ShapeError);
  CHECK_THROWS_AS(ops::unstack(x, 2), ShapeError);
}

TEST_CASE("flip reverses any axes in every layout") {
  const Tensor x = at::randn({5, 2, 3}, at::kDouble);
  const auto turned = [](const std::vector<int64_t>& axes) {
    return [axes](const Inputs& in) { return ops::flip(in[0], axes); };
  };
  CHECK(wrong_values({x}, turned({0}), x.flip(0)) == "");
  CHECK(wrong_values({x}, turned({-1, 1}), x.flip({2, 1})) == "");
  CHECK(wrong_values({x}, turned({}), x.flip({0, 1, 2})) == "");
  CHECK(wrong_gradients({x[0]}, turned({1})) == "");
}

TEST_CASE("roll rotates elements along axes, or of the flattened tensor, in every layout") {
  const Tensor x = at::randn({5, 4}, at::kDouble);
  const auto moved = [](const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes) {
    return [=](const Inputs& in) { return ops::roll(in[0], shifts, axes); };
  };
  for (int64_t shift : {0, 1, -2, 5, 13, -11}) {
    INFO("shift " << shift);
    CHECK(wrong_values({x}, moved({shift}, {0}), x.roll({shift}, {0})) == "");
    CHECK(wrong_values({x}, moved({shift}, {}), x.roll({shift})) == "");
  }
  CHECK(wrong_values({x}, moved({1, -3}, {0, -1}), x.roll({1, -3}, {0, 1})) == "");
  // One shift for the flattened tensor, several on one axis, and an axis twice.
  CHECK(wrong_values({x}, moved({2}, {0, 1}), x.roll({2, 2}, {0, 1})) == "");
  CHECK(wrong_values({x}, moved({2, 1}, {0}), x.roll({3}, {0})) == "");
  CHECK(wrong_values({x}, moved({2, -1}, {0, -2}), x.roll({1}, {0})) == "");
  const int64_t least = std::numeric_limits<int64_t>::min();
  CHECK(wrong_values({x}, moved({least, least}, {1}), x) == "");
  CHECK(wrong_values({x[0][0]}, moved({3}, {}), x[0][0]) == "");
  CHECK(wrong_values({at::empty({0, 2}, at::kDouble)}, moved({1}, {0}),
                     at::empty({0, 2}, at::kDouble)) == "");
  CHECK(wrong_gradients({x}, moved({2}, {0})) == "");
  CHECK(wrong_gradients({x}, moved({3}, {})) == "");
}

TEST_CASE("flip and roll keep a partial sum and do not gather a sharded axis") {
  const Mesh mesh = virtual_mesh({4});
  CommLog log;
  const CommLogScope scope(log);
  const DTensor x = pack(at::randn({8, 2}), Layout({"x", unsharded}, mesh));
  CHECK(ops::flip(x, {0}).layout() == x.layout());
  CHECK(ops::roll(x, {1}, {0}).layout() == x.layout());
  CHECK(log.count(CommOp::all_gather) == 0);
  log.clear();
  const Layout pending = Layout::replicated(mesh, 2).with_partial(1, Reduce::sum);
  const DTensor sum = make_value(at::randn({8, 2}), pending, 0);
  CHECK(ops::flip(sum).layout() == pending);
  CHECK(ops::roll(sum, {1}, {1}).layout() == pending);
  CHECK(log.to_string() == "");
}

TEST_CASE("invalid shifts and axes are refused") {
  const DTensor x = one_device(at::ones({2, 3, 4}));
  CHECK_THROWS_AS(ops::flip(x, {3}), ShapeError);
  CHECK_THROWS_AS(ops::roll(x, {1}, {3}), ShapeError);
  CHECK_THROWS_WITH(ops::roll(x, {1, 2, 3}, {0, 1}),
                    Catch::Contains("[roll] a shift for each of 2 axes, or one for all. "
                                    "Received: 3 shifts"));
  CHECK_THROWS_AS(ops::roll(x, {}, {0}), ShapeError);
}

}  // namespace window_test
