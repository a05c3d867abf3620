#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace elementwise_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using at::Tensor;
using D = DTensor;
using Inputs = std::vector<DTensor>;

struct Unary {
  const char* name;
  D (*function)(const D&);
  Tensor (*reference)(const Tensor&);
};

const Unary signed_functions[] = {
    {"neg", ops::neg, [](const Tensor& x) { return 0 - x; }},
    {"abs", ops::abs, [](const Tensor& x) { return at::where(x.lt(0), 0 - x, x); }},
    {"sign", ops::sign, [](const Tensor& x) { return x.div(x.abs()); }},
    {"exp", ops::exp, [](const Tensor& x) { return at::exp(x); }},
    {"expm1", ops::expm1, [](const Tensor& x) { return at::exp(x).sub(1); }},
    {"square", ops::square, [](const Tensor& x) { return x.mul(x); }},
    {"sin", ops::sin, [](const Tensor& x) { return at::sin(x); }},
    {"cos", ops::cos, [](const Tensor& x) { return at::cos(x); }},
    {"tanh", ops::tanh, [](const Tensor& x) { return at::sinh(x).div(at::cosh(x)); }},
    {"erf", ops::erf, [](const Tensor& x) { return at::erf(x); }},
    {"sigmoid", ops::sigmoid, [](const Tensor& x) { return at::exp(-x).add(1).reciprocal(); }},
    {"relu", ops::relu, [](const Tensor& x) { return x.clamp_min(0); }},
    {"softplus", ops::softplus, [](const Tensor& x) { return at::exp(x).log1p(); }},
    {"floor", ops::floor, [](const Tensor& x) { return at::floor(x); }},
    {"ceil", ops::ceil, [](const Tensor& x) { return -at::floor(-x); }},
    {"round", ops::round, [](const Tensor& x) { return at::floor(x.add(0.5)); }}};

const Unary positive_functions[] = {
    {"log", ops::log, [](const Tensor& x) { return at::log2(x).mul(std::log(2.0)); }},
    {"log1p", ops::log1p, [](const Tensor& x) { return at::log(x.add(1)); }},
    {"sqrt", ops::sqrt, [](const Tensor& x) { return at::pow(x, 0.5); }},
    {"rsqrt", ops::rsqrt, [](const Tensor& x) { return at::pow(x, -0.5); }},
    {"reciprocal", ops::reciprocal, [](const Tensor& x) { return at::pow(x, -1); }}};

struct Binary {
  const char* name;
  D (*function)(const D&, const D&);
  Tensor (*reference)(const Tensor&, const Tensor&);
};

const Binary number_functions[] = {
    {"add", ops::add, [](const Tensor& a, const Tensor& b) { return at::add(a, b); }},
    {"sub", ops::sub, [](const Tensor& a, const Tensor& b) { return at::sub(a, b); }},
    {"mul", ops::mul, [](const Tensor& a, const Tensor& b) { return at::mul(a, b); }},
    {"div", ops::div, [](const Tensor& a, const Tensor& b) { return a.mul(b.reciprocal()); }},
    {"maximum", ops::maximum,
     [](const Tensor& a, const Tensor& b) { return at::where(a.gt(b), a, b); }},
    {"minimum", ops::minimum,
     [](const Tensor& a, const Tensor& b) { return at::where(a.lt(b), a, b); }}};

/// Discontinuous functions: compared exactly, and not on partial sums, which round.
const Binary exact_functions[] = {
    {"floor_div", ops::floor_div,
     [](const Tensor& a, const Tensor& b) { return at::floor(a.div(b)); }},
    {"remainder", ops::remainder,
     [](const Tensor& a, const Tensor& b) { return a.sub(at::floor(a.div(b)).mul(b)); }},
    {"equal", ops::equal, [](const Tensor& a, const Tensor& b) { return at::eq(a, b); }},
    {"not_equal", ops::not_equal, [](const Tensor& a, const Tensor& b) { return at::ne(a, b); }},
    {"less", ops::less, [](const Tensor& a, const Tensor& b) { return at::lt(a, b); }},
    {"less_equal", ops::less_equal, [](const Tensor& a, const Tensor& b) { return at::le(a, b); }},
    {"greater", ops::greater, [](const Tensor& a, const Tensor& b) { return at::gt(a, b); }},
    {"greater_equal", ops::greater_equal,
     [](const Tensor& a, const Tensor& b) { return at::ge(a, b); }}};

D one_device(const Tensor& t) { return pack(t, Layout::replicated(virtual_mesh({1}), t.dim())); }

/// Integers as float64, so that comparisons meet equal ones; none is 0.
Tensor numbers(at::IntArrayRef shape) {
  return at::randint(1, 5, shape, at::kDouble)
      .mul(at::randint(0, 2, shape, at::kDouble).mul(2).sub(1));
}

}  // namespace

TEST_CASE("functions of one tensor match ATen in every layout") {
  const Tensor x = at::rand({3, 5}, at::kDouble).mul(4).sub(2);
  for (const Unary& row : signed_functions) {
    INFO(row.name);
    CHECK(wrong_values(
              {x}, [&](const Inputs& in) { return row.function(in[0]); }, row.reference(x)) == "");
  }
  const Tensor positive = at::rand({3, 5}, at::kDouble).add(0.1);
  for (const Unary& row : positive_functions) {
    INFO(row.name);
    CHECK(wrong_values(
              {positive}, [&](const Inputs& in) { return row.function(in[0]); },
              row.reference(positive)) == "");
  }
}

TEST_CASE("functions of two tensors broadcast as in ATen, in every layout") {
  const std::pair<Tensor, Tensor> cases[] = {{numbers({3, 4}), numbers({3, 4})},
                                             {numbers({4}), numbers({3, 4})},
                                             {numbers({2, 1, 3}), numbers({4, 1})},
                                             {numbers({5}), numbers({})}};
  for (const Binary& row : number_functions) {
    for (const auto& [a, b] : cases) {
      INFO(row.name << " of " << a.sizes() << " and " << b.sizes());
      CHECK(wrong_values(
                {a, b}, [&](const Inputs& in) { return row.function(in[0], in[1]); },
                row.reference(a, b)) == "");
    }
  }
  for (const Binary& row : exact_functions) {
    for (const auto& [a, b] : cases) {
      INFO(row.name << " of " << a.sizes() << " and " << b.sizes());
      CHECK(wrong_values(
                {a, b}, [&](const Inputs& in) { return row.function(in[0], in[1]); },
                row.reference(a, b), 0) == "");
    }
  }
}

TEST_CASE("powers, constants and operators") {
  const Tensor a = at::rand({3, 4}, at::kDouble).add(0.5), b = at::rand({4}, at::kDouble).add(0.5);
  CHECK(wrong_values(
            {a, b}, [](const Inputs& in) { return ops::pow(in[0], in[1]); },
            at::exp(at::log(a).mul(b))) == "");
  CHECK(wrong_values(
            {a}, [](const Inputs& in) { return ops::pow(in[0], 3); }, a * a * a) == "");
  CHECK(wrong_values(
            {a, b},
            [](const Inputs& in) {
              return -(in[0] + in[1]) * 2 / 4 + (3 * (in[0] - in[1]) - 1) + in[0] * in[1] / in[1];
            },
            -(a + b) / 2 + 3 * (a - b) - 1 + a) == "");
  CHECK(wrong_values(
            {a, b[0]}, [](const Inputs& in) { return ops::scale_by(in[0], in[1]); }, a * b[0]) ==
        "");
}

TEST_CASE("bools") {
  const Tensor a = at::randint(0, 2, {3, 4}, at::kBool), b = at::randint(0, 2, {4}, at::kBool);
  CHECK(wrong_values(
            {a, b}, [](const Inputs& in) { return ops::logical_and(in[0], in[1]); },
            at::bitwise_and(a, b)) == "");
  CHECK(wrong_values(
            {a, b}, [](const Inputs& in) { return ops::logical_or(in[0], in[1]); },
            at::bitwise_or(a, b)) == "");
  CHECK(wrong_values(
            {a}, [](const Inputs& in) { return ops::logical_not(in[0]); }, a.eq(false)) == "");
  const Tensor x = at::tensor({1.0, INFINITY, -INFINITY, NAN}, at::kDouble);
  const D finite = ops::is_finite(one_device(x));
  CHECK(difference(finite.full(), at::tensor({1, 0, 0, 0}, at::kLong).to(at::kBool)) == "");
}

TEST_CASE("where and clip, in every layout") {
  const Tensor a = at::randn({3, 4}, at::kDouble), b = at::randn({4}, at::kDouble);
  const Tensor condition = at::randint(0, 2, {3, 1}, at::kBool);
  const auto pick = [](const Inputs& in) { return ops::where(in[0], in[1], in[2]); };
  CHECK(wrong_values({condition, a, b}, pick, at::where(condition, a, b)) == "");
  CHECK(wrong_gradients({condition, a, b}, pick) == "");
  const auto clipped = [](const Inputs& in) { return ops::clip(in[0], -0.4, 0.6); };
  CHECK(wrong_values({a}, clipped, at::where(a.lt(-0.4), -0.4, at::where(a.gt(0.6), 0.6, a))) ==
        "");
  CHECK(wrong_gradients({a}, clipped) == "");
}

TEST_CASE("gradients of broadcast operands are reduced to their shapes") {
  const Tensor a = at::rand({3, 4}, at::kDouble).add(0.5), b = at::rand({4}, at::kDouble).add(0.5);
  const Tensor column = at::rand({3, 1}, at::kDouble).add(2), number = at::rand({}, at::kDouble);
  CHECK(wrong_gradients({a, b}, [](const Inputs& in) { return in[0] / in[1]; }) == "");
  CHECK(wrong_gradients({b, column}, [](const Inputs& in) { return in[0] * in[1]; }) == "");
  CHECK(wrong_gradients({column, a}, [](const Inputs& in) { return in[0] - in[1]; }) == "");
  CHECK(wrong_gradients({a, number}, [](const Inputs& in) { return ops::maximum(in[0], in[1]); }) ==
        "");
  CHECK(wrong_gradients({a, number},
                        [](const Inputs& in) { return ops::scale_by(in[0], in[1]); }) == "");
}

TEST_CASE("casts change the dtype and nothing else") {
  const Tensor x = at::tensor({-1.5, 0.0, 2.75}, at::kDouble);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong, at::kInt, at::kBool}) {
    CHECK(wrong_values(
              {x.to(at::kLong)}, [&](const Inputs& in) { return ops::cast(in[0], dtype); },
              x.to(at::kLong).to(dtype)) == "");
    CHECK(difference(ops::cast(one_device(x), dtype).full(), x.to(dtype)) == "");
  }
  const D same = one_device(x);
  CHECK(ops::cast(same, at::kDouble).id() == same.id());
}

TEST_CASE("a bias is not added once per partial sum") {
  const Mesh mesh = virtual_mesh({2});
  const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
  const Tensor x = at::randn({4}, at::kDouble), bias = at::randn({4}, at::kDouble);
  const D value = make_value(x, pending, 1), other = make_value(x, pending, 2);
  CommLog log;
  const CommLogScope scope(log);
  const D twice = ops::neg(value + other) * 0.5;
  CHECK(twice.layout() == pending);
  CHECK(log.to_string() == "");
  CHECK(difference(twice.full(), -x, 1e-12, 1e-12) == "");
  log.clear();
  const D shifted = value + pack(bias, Layout::replicated(mesh, 1));
  CHECK(!shifted.layout().is_partial());
  CHECK(log.count(CommOp::all_reduce) == 1);
  CHECK(difference(shifted.full(), x + bias, 1e-12, 1e-12) == "");
}

TEST_CASE("elementwise functions refuse invalid operands in one line") {
  const D x = one_device(at::ones({3, 4})), y = one_device(at::ones({3}));
  CHECK_THROWS_WITH(ops::add(x, y), Contains("[add] shapes broadcast") &&
                                        Contains("(3, 4) and (3,)") && !Contains("\n"));
  CHECK_THROWS_AS(ops::where(one_device(at::ones({2}, at::kBool)), y, y), ShapeError);
  CHECK_THROWS_WITH(ops::mul(x, one_device(at::ones({4}, at::kDouble))),
                    "[mul] operands have one dtype. Received: float32 and float64. To fix: bring "
                    "one to the other's with ops::cast().");
  CHECK_THROWS_AS(ops::where(y, y, y), ConfigError);
  CHECK_THROWS_AS(ops::scale_by(x, y), ShapeError);
  const D other = pack(at::ones({3}), Layout::replicated(virtual_mesh({2}), 1));
  CHECK_THROWS_AS(ops::add(y, other), MeshError);
  CHECK_THROWS_AS(ops::add(y, DTensor()), StateError);
}

TEST_CASE("integers beside a floating dtype are cast to it") {
  const at::Tensor half = at::full({2, 2}, 0.5);
  for (const at::ScalarType integral : {at::kByte, at::kInt, at::kLong, at::kBool}) {
    const D a = one_device(at::ones({2, 2}, integral)), b = one_device(half);
    const at::Tensor ones = at::ones({2, 2});
    CHECK(difference(ops::add(a, b).full(), ones + half) == "");
    CHECK(difference(ops::sub(b, a).full(), half - ones) == "");
    CHECK(difference(ops::less(b, a).full(), half < ones) == "");
    CHECK(difference(ops::matmul(a, b).full(), at::matmul(ones, half)) == "");
    CHECK(difference(ops::einsum("ij,jk->ik", {b, a}).full(), at::ones({2, 2})) == "");
  }
  CHECK(ops::mul(one_device(at::ones({2}, at::kLong)), one_device(at::ones({2}, at::kHalf)))
            .dtype() == at::kHalf);
}

TEST_CASE("unsupported dtypes are refused before ATen is called") {
  const D integers = one_device(at::ones({3}, at::kLong)),
          truth = one_device(at::ones({3}, at::kBool));
  using Unary = DTensor (*)(const DTensor&);
  for (const Unary function :
       std::initializer_list<Unary>{ops::exp, ops::sqrt, ops::floor, ops::relu}) {
    CHECK_THROWS_AS(function(integers), ConfigError);
  }
  for (const Unary function : std::initializer_list<Unary>{ops::neg, ops::abs, ops::square}) {
    CHECK_THROWS_AS(function(truth), ConfigError);
  }
  using Binary = DTensor (*)(const DTensor&, const DTensor&);
  for (const Binary function :
       std::initializer_list<Binary>{ops::add, ops::sub, ops::mul, ops::maximum, ops::remainder}) {
    CHECK_THROWS_AS(function(truth, truth), ConfigError);
  }
  CHECK_THROWS_AS(ops::div(integers, integers), ConfigError);
  CHECK_THROWS_AS(ops::clip(integers, 0, 1), ConfigError);
  CHECK_THROWS_AS(ops::scale(integers, 2), ConfigError);
  const D zero = one_device(at::tensor({1, 0, 2}, at::kLong));
  CHECK_THROWS_AS(ops::floor_div(integers, zero), ConfigError);
  CHECK_THROWS_AS(ops::remainder(integers, zero), ConfigError);
}

}  // namespace elementwise_test
