#include <tessera/framework/ops/operand.hpp>

#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace operand_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

/// Calls a function of a tensor on one device and sharded over two.
void check(const at::Tensor& x, const at::Tensor& expected,
           const std::function<DTensor(const DTensor&)>& function) {
  const Mesh mesh = create_mesh({{"batch", 2}});
  for (const Layout& layout : {Layout({unsharded}, mesh), Layout({"batch"}, mesh)}) {
    CAPTURE(layout.describe());
    const at::Tensor actual = function(pack(x, layout)).full();
    CHECK(actual.scalar_type() == expected.scalar_type());
    CHECK(difference(actual, expected) == "");
  }
}

}  // namespace

TEST_CASE("a number may stand on either side of a tensor") {
  const at::Tensor x = at::tensor({0.5f, -2.f, 3.f, 7.f});
  const auto check_of_x = [&](const at::Tensor& expected, const auto& function) {
    check(x, expected, function);
  };
  check_of_x(x + 1, [](const DTensor& t) { return 1 + t; });
  check_of_x(1 - x, [](const DTensor& t) { return 1 - t; });
  check_of_x(2.5 * x, [](const DTensor& t) { return 2.5 * t; });
  check_of_x(at::full({4}, 2.f) / x, [](const DTensor& t) { return 2.0 / t; });
  check_of_x(at::clamp_min(x, 1), [](const DTensor& t) { return ops::maximum(t, 1); });
  check_of_x(at::clamp_max(x, 1.5), [](const DTensor& t) { return ops::minimum(1.5, t); });
  check_of_x(at::pow(2, x), [](const DTensor& t) { return ops::pow(2, t); });
  check_of_x(at::where(x > 0, x, x * 0.1f),
             [](const DTensor& t) { return ops::where(t > 0, t, 0.1 * t); });
  check_of_x(at::where(x > 0, x, at::zeros({4})),
             [](const DTensor& t) { return ops::where(t > 0, t, 0.0); });
  check_of_x(x, [](const DTensor& t) { return +t; });
}

TEST_CASE("comparisons with tensors and numbers are elementwise") {
  const at::Tensor x = at::tensor({1, 2, 3, 4});
  check(x, x > 2, [](const DTensor& t) { return t > 2; });
  check(x, x >= 2, [](const DTensor& t) { return 2 <= t; });
  check(x, x < 2, [](const DTensor& t) { return t < 2; });
  check(x, x <= 2, [](const DTensor& t) { return 2 >= t; });
  check(x, x == 2, [](const DTensor& t) { return 2 == t; });
  check(x, x != 2, [](const DTensor& t) { return t != 2; });
  check(x, at::ones({4}, at::kBool), [](const DTensor& t) { return t == t; });
  check(x, x <= 2, [](const DTensor& t) { return !(t > 2); });
  // A fraction is not rounded.
  check(x, x > 2, [](const DTensor& t) { return t > 2.5; });
}

TEST_CASE("a number takes the tensor's dtype, a fraction makes integers float32") {
  const at::Tensor numbers = at::tensor({1, 2, 3, 4}, at::kLong);
  check(numbers, numbers * 3, [](const DTensor& t) { return ops::mul(t, 3); });
  check(numbers, numbers.to(at::kFloat) * 0.5, [](const DTensor& t) { return ops::mul(0.5, t); });
  const at::Tensor wide = at::tensor({0.1, 0.2}, at::kDouble);
  check(wide, at::maximum(wide, at::tensor(0.15)),
        [](const DTensor& t) { return ops::maximum(t, 0.15); });
  const at::Tensor bools = at::tensor({1, 0}).to(at::kBool);
  check(bools, at::tensor({3, 2}, at::kInt), [](const DTensor& t) { return ops::add(t, 2); });
  CHECK_THROWS_AS(ops::add(Operand(1), Operand(2)), ConfigError);
}

TEST_CASE("assigning operators make a new value, and are differentiable") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const DTensor x = pack(at::tensor({1.0, 2.0}), Layout({"batch"}, mesh));
  GradientTape tape;
  tape.watch(x);
  DTensor y = x;
  y *= x;
  y += 1;
  y -= x;
  y /= 2.0;
  CHECK(difference(x.full(), at::tensor({1.0, 2.0})) == "");
  CHECK(difference(y.full(), at::tensor({0.5, 1.5})) == "");
  CHECK(difference(tape.gradient(ops::maximum(y, 1.0), x).full(), at::tensor({0.0, 1.5})) == "");
}

}  // namespace operand_test
