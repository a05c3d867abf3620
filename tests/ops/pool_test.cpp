// Pooling of volumes, and to given extents. The oracle compares gradients with finite differences.
#include <tessera/framework/ops/pool.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace pool_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;
using ops::WindowAxis;

namespace {

using Pool = std::function<DTensor(const DTensor&)>;

at::Tensor channels_last(const at::Tensor& x) { return x.movedim(1, -1).contiguous(); }

/// Returns the value, and x's gradient for an upstream gradient that differs everywhere.
std::vector<at::Tensor> results(const Pool& pool, const DTensor& x) {
  GradientTape tape;
  tape.watch(x);
  const DTensor y = pool(x);
  const DTensor dy = pack(random_values({y.shape()}, 7), fetch_layout(y));
  return {y.full(), tape.gradient(y, x, {.output_gradient = dy}).full()};
}

/// Checks the value on one device, and that all layouts on meshes of 2, 4 and 2 by 2 devices give
/// that device's value and gradient.
void check_pool(const Pool& pool, const at::Tensor& x, const at::Tensor& expected) {
  const std::vector<at::Tensor> one =
      results(pool, pack(x, Layout::replicated(virtual_mesh({1}), x.dim())));
  CHECK(difference(one[0], expected, 1e-12, 1e-12) == "");
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2}, {4}, {2, 2}}) {
    const Mesh mesh = virtual_mesh(sizes);
    for (const Layout& layout : layouts_of(mesh, x.dim(), {})) {
      CAPTURE(short_name(mesh), short_name({layout}));
      const std::vector<at::Tensor> many = results(pool, pack(x, layout));
      CHECK(difference(many[0], one[0], 1e-12, 1e-12) == "");
      CHECK(difference(many[1], one[1], 1e-12, 1e-12) == "");
    }
  }
}

at::Tensor distinct(const Shape& shape) {
  return random_values({.shape = shape, .distinct = true}, 3);
}

}  // namespace

TEST_CASE("volumes are pooled as by ATen in any layout") {
  const at::Tensor x = distinct({2, 5, 4, 6, 3}), first = x.movedim(-1, 1).contiguous();
  const std::vector<WindowAxis> axes = {{3, 2, 1, 1, 1}, {2, 2}, {3, 1, 1, 1, 1}};
  const auto [values, positions] =
      at::max_pool3d_with_indices(first, {3, 2, 3}, {2, 2, 1}, {1, 0, 1});
  check_pool([&](const DTensor& in) { return ops::max_pool(in, axes); }, x, channels_last(values));
  const at::Tensor means =
      at::avg_pool3d(first, {3, 2, 3}, {2, 2, 1}, {1, 0, 1}, false, /*count_include_pad=*/false);
  check_pool([&](const DTensor& in) { return ops::avg_pool(in, axes); }, x, channels_last(means));
  const Mesh mesh = virtual_mesh({2, 2});
  const Layout sharded({"unsharded", "x", "y", "unsharded", "unsharded"}, mesh);
  const DTensor found = ops::max_pool_with_positions(pack(x, sharded), axes).second;
  CHECK(at::equal(found.full(), channels_last(positions)));
}

TEST_CASE("adaptive poolings are ATen's in any layout") {
  // Sizes that do not divide the extent, divide it, have a common divisor with it, and exceed it.
  const at::Tensor x = distinct({2, 5, 4, 6, 2}), first = x.movedim(-1, 1).contiguous();
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 2, 4}, {1, 4, 5}, {7, 3, 1}}) {
    CAPTURE(sizes);
    check_pool([&](const DTensor& in) { return ops::adaptive_max_pool(in, sizes); }, x,
               channels_last(std::get<0>(at::adaptive_max_pool3d(first, sizes))));
    check_pool([&](const DTensor& in) { return ops::adaptive_avg_pool(in, sizes); }, x,
               channels_last(at::adaptive_avg_pool3d(first, sizes)));
  }
  const at::Tensor steps = distinct({2, 7, 3});
  check_pool([](const DTensor& in) { return ops::adaptive_avg_pool(in, {3}); }, steps,
             channels_last(at::adaptive_avg_pool1d(steps.movedim(-1, 1).contiguous(), {3})));
}

TEST_CASE("of equal maxima of an adaptive pooling the first has the gradient") {
  const DTensor x = pack(at::ones({1, 2, 4, 1}), Layout::replicated(virtual_mesh({1}), 4));
  GradientTape tape;
  tape.watch(x);
  const at::Tensor dx = tape.gradient(ops::adaptive_max_pool(x, {1, 3}), x).full();
  const at::Tensor expected = at::zeros({1, 2, 4, 1});
  expected.narrow(1, 0, 1).narrow(2, 0, 3).fill_(1);
  CHECK(at::equal(dx, expected));
}

TEST_CASE("an invalid adaptive pooling is refused") {
  const DTensor x = pack(at::zeros({1, 3, 3, 2}), Layout::replicated(virtual_mesh({1}), 4));
  CHECK_THROWS_WITH(ops::adaptive_max_pool(x, {2, 0}),
                    Contains("[adaptive_max_pool] extents are at least 1. Received: from 3 to 0"));
  CHECK_THROWS_WITH(ops::adaptive_avg_pool(x, {2}),
                    Contains("1 spatial ones (1 to 3)") && Contains("(1, 3, 3, 2)"));
}

}  // namespace pool_test
