#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace references_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using D = DTensor;

/// Applies f to every element.
template <class Function>
Tensor map(const Tensor& x, const Function& f) {
  const Tensor y = at::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) y.view(-1)[i].fill_(f(x.view(-1)[i].item<double>()));
  return y;
}

/// A tensor that is neither symmetric nor of one sign.
Tensor numbers(Shape shape, double lo = -2, double hi = 2) {
  return random_values({std::move(shape), at::kDouble, lo, hi}, 5);
}

D one_device(const Tensor& x) {
  return make_value(x, Layout::replicated(virtual_mesh({1}), x.dim()), 0);
}

struct Unary {
  const char* name;
  D (*run)(const D&);
  double (*formula)(double);
  double lo = -2, hi = 2;
};

const Unary unary[] = {
    {"neg", ops::neg, [](double x) { return -x; }},
    {"abs", ops::abs, [](double x) { return x < 0 ? -x : x; }},
    {"sign", ops::sign, [](double x) { return x < 0 ? -1.0 : 1.0; }},
    {"exp", ops::exp, [](double x) { return std::exp(x); }},
    {"expm1", ops::expm1, [](double x) { return std::expm1(x); }},
    {"log", ops::log, [](double x) { return std::log(x); }, 0.1, 3},
    {"log1p", ops::log1p, [](double x) { return std::log1p(x); }, -0.9, 3},
    {"sqrt", ops::sqrt, [](double x) { return std::sqrt(x); }, 0.1, 3},
    {"rsqrt", ops::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.1, 3},
    {"square", ops::square, [](double x) { return x * x; }},
    {"reciprocal", ops::reciprocal, [](double x) { return 1 / x; }},
    {"sin", ops::sin, [](double x) { return std::sin(x); }},
    {"cos", ops::cos, [](double x) { return std::cos(x); }},
    {"tanh", ops::tanh, [](double x) { return std::tanh(x); }},
    {"erf", ops::erf, [](double x) { return std::erf(x); }},
    {"sigmoid", ops::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"relu", ops::relu, [](double x) { return x > 0 ? x : 0; }},
    {"softplus", ops::softplus, [](double x) { return std::log(1 + std::exp(x)); }},
    {"floor", ops::floor, [](double x) { return std::floor(x); }},
    {"ceil", ops::ceil, [](double x) { return std::ceil(x); }},
    {"round", ops::round, [](double x) { return std::nearbyint(x); }},
    {"scale", [](const D& x) { return x * 2.5; }, [](double x) { return 2.5 * x; }},
    {"add_scalar", [](const D& x) { return x - 1.5; }, [](double x) { return x - 1.5; }},
    {"pow_scalar", [](const D& x) { return ops::pow(x, 1.7); },
     [](double x) { return std::pow(x, 1.7); }, 0.1, 3},
    {"clip", [](const D& x) { return ops::clip(x, -0.5, 0.7); },
     [](double x) { return std::min(std::max(x, -0.5), 0.7); }}};

struct Binary {
  const char* name;
  D (*run)(const D&, const D&);
  double (*formula)(double, double);
  at::ScalarType dtype = at::kDouble;
  double lo = 0.3, hi = 3;
};

const Binary binary[] = {
    {"add", ops::add, [](double a, double b) { return a + b; }},
    {"sub", ops::sub, [](double a, double b) { return a - b; }},
    {"mul", ops::mul, [](double a, double b) { return a * b; }},
    {"div", ops::div, [](double a, double b) { return a / b; }},
    {"maximum", ops::maximum, [](double a, double b) { return a > b ? a : b; }},
    {"minimum", ops::minimum, [](double a, double b) { return a < b ? a : b; }},
    {"pow", ops::pow, [](double a, double b) { return std::pow(a, b); }},
    {"floor_div", ops::floor_div, [](double a, double b) { return std::floor(a / b); }, at::kLong,
     1, 9},
    {"remainder", ops::remainder, [](double a, double b) { return a - b * std::floor(a / b); },
     at::kLong, 1, 9},
    {"equal", ops::equal, [](double a, double b) { return double(a == b); }, at::kLong, 0, 3},
    {"not_equal", ops::not_equal, [](double a, double b) { return double(a != b); }, at::kLong, 0,
     3},
    {"less", ops::less, [](double a, double b) { return double(a < b); }, at::kLong, 0, 3},
    {"less_equal", ops::less_equal, [](double a, double b) { return double(a <= b); }, at::kLong, 0,
     3},
    {"greater", ops::greater, [](double a, double b) { return double(a > b); }, at::kLong, 0, 3},
    {"greater_equal", ops::greater_equal, [](double a, double b) { return double(a >= b); },
     at::kLong, 0, 3},
    {"logical_and", ops::logical_and, [](double a, double b) { return a * b; }, at::kBool, 0, 2},
    {"logical_or", ops::logical_or, [](double a, double b) { return std::max(a, b); }, at::kBool, 0,
     2}};

}  // namespace

TEST_CASE("elementwise functions of one tensor follow their formulas") {
  for (const Unary& row : unary) {
    const Tensor x = numbers({4, 5}, row.lo, row.hi);
    INFO(row.name);
    CHECK(difference(row.run(one_device(x)).full(), map(x, row.formula), 1e-12, 1e-12) == "");
  }
}

TEST_CASE("elementwise functions of two tensors follow their formulas") {
  for (const Binary& row : binary) {
    const Tensor a = random_values({{4, 3}, row.dtype, row.lo, row.hi}, 1);
    const Tensor b = random_values({{3}, row.dtype, row.lo, row.hi}, 2);
    const Tensor y = row.run(one_device(a), one_device(b)).full().to(at::kDouble);
    INFO(row.name);
    for (int64_t i = 0; i < 12; ++i) {
      const double expected = row.formula(a[i / 3][i % 3].to(at::kDouble).item<double>(),
                                          b[i % 3].to(at::kDouble).item<double>());
      CHECK(y[i / 3][i % 3].item<double>() == Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("products match ATen") {
  const Tensor a = numbers({2, 3, 4}), b = numbers({2, 4, 5}), m = numbers({4, 3}),
               t = numbers({3, 4});
  const auto product = [](const Tensor& x, const Tensor& y, bool tx, bool ty) {
    return ops::matmul(one_device(x), one_device(y), tx, ty).full();
  };
  CHECK(difference(product(a, b, false, false), at::matmul(a, b), 1e-12, 1e-12) == "");
  CHECK(difference(product(m, b, true, false), at::matmul(m.t(), b), 1e-12, 1e-12) == "");
  CHECK(difference(product(a, m, false, false), at::matmul(a, m), 1e-12, 1e-12) == "");
  CHECK(difference(product(b, t, true, true), at::matmul(b.transpose(1, 2), t.t()), 1e-12, 1e-12) ==
        "");
  const D summed = ops::einsum("bmk, kn -> bn", {one_device(a), one_device(m)});
  CHECK(difference(summed.full(), at::matmul(a, m).sum(1), 1e-12, 1e-12) == "");
}

TEST_CASE("reductions match ATen") {
  const Tensor x = numbers({4, 3, 5});
  const D d = one_device(x);
  const auto same = [](const D& actual, const Tensor& expected) {
    return difference(actual.full(), expected, 1e-12, 1e-12);
  };
  CHECK(same(ops::sum(d), x.sum()) == "");
  CHECK(same(ops::sum(d, {0, -1}, true), x.sum(at::IntArrayRef({0, 2}), true)) == "");
  CHECK(same(ops::max(d, {1}), x.amax({1})) == "");
  CHECK(same(ops::min(d, {0, 2}), x.amin({0, 2})) == "");
  CHECK(same(ops::prod(d, {1}, true), x.prod(1, true)) == "");
  const Tensor mask = x.gt(-1.2);
  CHECK(same(ops::all(one_device(mask), {0}), mask.all(0)) == "");
  CHECK(same(ops::any(one_device(mask.logical_not()), {0}, true),
             mask.logical_not().any(0, true)) == "");
}

TEST_CASE("shapes change as in ATen") {
  const Tensor x = numbers({4, 3, 5});
  const D d = one_device(x);
  const auto same = [](const D& actual, const Tensor& expected) {
    return difference(actual.full(), expected);
  };
  CHECK(same(ops::reshape(d, {6, -1}), x.reshape({6, 10})) == "");
  CHECK(same(ops::transpose(d, {2, 0, 1}), x.permute({2, 0, 1})) == "");
  CHECK(same(ops::transpose(d), x.permute({2, 1, 0})) == "");
  CHECK(same(ops::slice(d, 2, 1, 3), x.slice(2, 1, 4)) == "");
  CHECK(same(ops::pad(d, 0, 2, 1, 1.5), at::constant_pad_nd(x, {0, 0, 0, 0, 2, 1}, 1.5)) == "");
  CHECK(same(ops::concat({d, d}, 1), at::cat({x, x}, 1)) == "");
  CHECK(same(ops::broadcast_to(d, {2, 4, 3, 5}), x.expand({2, 4, 3, 5})) == "");
  CHECK(same(ops::cast(d, at::kFloat), x.to(at::kFloat)) == "");
  const Tensor positive = x.gt(0);
  CHECK(same(ops::where(one_device(positive), d, -d), x.abs()) == "");
  CHECK(same(ops::logical_not(one_device(positive)), x.le(0)) == "");
  CHECK(same(ops::is_finite(ops::log(ops::relu(d))), positive) == "");
  CHECK(same(ops::scale_by(d, one_device(at::scalar_tensor(2.5, at::kDouble))), x * 2.5) == "");
}

}  // namespace references_test
