#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace sort_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

Function sorted(int64_t axis) {
  return [axis](const Inputs& in) { return ops::sort(in[0], axis); };
}
Function order(int64_t axis) {
  return [axis](const Inputs& in) { return ops::argsort(in[0], axis); };
}
Function products(int64_t axis) {
  return [axis](const Inputs& in) { return ops::cumprod(in[0], axis); };
}

/// Returns the gradient of the sum of squares of a function, whose gradient is a second derivative.
Function slope(const Function& function) {
  return [function](const Inputs& in) {
    GradientTape tape;
    tape.watch(in[0]);
    return tape.gradient(ops::square(function(in)), in[0]);
  };
}

}  // namespace

TEST_CASE("sort and argsort order any axis in any layout") {
  const Tensor x = random_values({{4, 2, 5}, at::kDouble, -1, 1, /*distinct=*/true}, 3);
  for (int64_t axis : {0, 1, -1}) {
    const auto [values, indices] = x.sort(axis);
    INFO("axis " << axis);
    CHECK(wrong_values({x}, sorted(axis), values) == "");
    CHECK(wrong_values({x}, order(axis), indices) == "");
  }
  const Tensor none = at::empty({2, 0}, at::kDouble);
  CHECK(wrong_values({none}, sorted(1), none) == "");
}

TEST_CASE("equal elements keep their order in argsort, and NaN is last") {
  const Tensor x = at::tensor({2, 3, 1, 1, 3, 2}, at::kLong).view({1, 6}).repeat({3, 1});
  const Tensor indices = at::tensor({2, 3, 0, 5, 1, 4}, at::kLong);
  CHECK(wrong_values({x}, order(1), indices.expand({3, 6})) == "");
  const Tensor equal = at::zeros({2, 5000});
  CHECK(wrong_values({equal}, order(1), at::arange(5000).expand({2, 5000}), 0) == "");
  const Tensor odd = at::tensor({1.0F, NAN, INFINITY, -2.0F}).view({1, 4});
  CHECK(wrong_values({odd}, order(1), at::tensor({3, 0, 2, 1}, at::kLong).view({1, 4}), 0) == "");
}

TEST_CASE("the gradient of sort goes back to where the elements were") {
  const Tensor x = random_values({{3, 6}, at::kDouble, -1, 1, /*distinct=*/true}, 4);
  for (int64_t axis : {0, 1}) CHECK(wrong_gradients({x}, sorted(axis)) == "");
  CHECK(wrong_gradients({x}, slope(sorted(1))) == "");
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor value = pack(x.repeat({2, 1}), Layout({"x", unsharded}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  CHECK(ops::sort(value, 1).layout() == value.layout());
  CHECK(log.to_string() == "");
}

TEST_CASE("cumprod multiplies along any axis in any layout") {
  const Tensor x = at::randn({3, 5, 2}, at::kDouble);
  for (int64_t axis : {0, 1, -1}) {
    INFO("axis " << axis);
    CHECK(wrong_values({x}, products(axis), x.cumprod(axis)) == "");
  }
  const Tensor none = at::empty({2, 0}, at::kDouble);
  CHECK(wrong_values({none}, products(1), none) == "");
  const Tensor truth = at::tensor({1, 1, 0, 1}, at::kInt);
  CHECK(wrong_values({truth.to(at::kBool)}, products(0), at::tensor({1, 1, 0, 0}, at::kInt)) == "");
}

TEST_CASE("gradients of cumprod are correct where elements are 0") {
  Tensor x = random_values({{3, 5}, at::kDouble, -1.5, 1.5}, 5).clone();
  CHECK(wrong_gradients({x}, products(1)) == "");
  x[0][1].fill_(0);
  x[1][0].fill_(0);
  x[1][3].fill_(0);
  x[2][4].fill_(0);
  for (int64_t axis : {0, 1}) {
    CHECK(wrong_gradients({x}, products(axis)) == "");
    CHECK(wrong_gradients({x}, slope(products(axis))) == "");
  }
  CHECK(wrong_gradients({x.narrow(1, 2, 1)}, products(1)) == "");
}

TEST_CASE("sort, argsort and cumprod refuse axes that x lacks") {
  const DTensor x = pack(at::ones({2, 3}), Layout::replicated(virtual_mesh({1}), 2));
  CHECK_THROWS_AS(ops::sort(x, 2), ShapeError);
  CHECK_THROWS_AS(ops::argsort(x, -3), ShapeError);
  CHECK_THROWS_AS(ops::cumprod(x, 2), ShapeError);
  CHECK_THROWS_AS(ops::sort(pack(at::ones({}), Layout::replicated(virtual_mesh({1}), 0))),
                  ShapeError);
}

}  // namespace sort_test
