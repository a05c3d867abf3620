#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace reduce_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;
using Reduction = DTensor (*)(const DTensor&, const ops::Axes&, bool);

Function over(Reduction reduction, ops::Axes axes, bool keepdims = false) {
  return [=](const Inputs& in) { return reduction(in[0], axes, keepdims); };
}

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

const std::vector<ops::Axes> axis_lists = {{0}, {1}, {-1}, {0, 2}, {2, 1}, {0, 1, 2}};

}  // namespace

TEST_CASE("sum, mean, max and min over any axes match ATen in every layout") {
  const Tensor x = at::randn({3, 5, 2}, at::kDouble);
  for (const ops::Axes& axes : axis_lists) {
    for (bool keep : {false, true}) {
      INFO(Catch::StringMaker<ops::Axes>::convert(axes) << " keepdims " << keep);
      CHECK(wrong_values({x}, over(ops::sum, axes, keep), x.sum(axes, keep)) == "");
      CHECK(wrong_values({x}, over(ops::mean, axes, keep), x.mean(axes, keep)) == "");
      CHECK(wrong_values({x}, over(ops::max, axes, keep), x.amax(axes, keep)) == "");
      CHECK(wrong_values({x}, over(ops::min, axes, keep), x.amin(axes, keep)) == "");
    }
  }
  CHECK(wrong_values({x}, over(ops::sum, {}), x.sum()) == "");
  CHECK(wrong_values({x[0][0][0]}, over(ops::max, {}), x[0][0][0]) == "");
}

TEST_CASE("prod, all and any match ATen in every layout") {
  const Tensor x = at::randn({3, 5}, at::kDouble), truth = at::randint(0, 2, {3, 4}, at::kBool);
  CHECK(wrong_values({x}, over(ops::prod, {1}), x.prod(1)) == "");
  CHECK(wrong_values({x}, over(ops::prod, {}), x.prod()) == "");
  CHECK(wrong_values({truth}, over(ops::all, {0}), truth.all(0)) == "");
  CHECK(wrong_values({truth}, over(ops::any, {1}, true), truth.any(1, true)) == "");
  CHECK(wrong_values({truth}, over(ops::any, {}), truth.any()) == "");
}

TEST_CASE("reductions of integers stay integers") {
  const Tensor x = at::randint(-9, 9, {3, 5}, at::kLong);
  CHECK(wrong_values({x}, over(ops::sum, {1}), x.sum(1)) == "");
  CHECK(wrong_values({x}, over(ops::max, {0}), x.amax(0)) == "");
  CHECK(wrong_values({x}, over(ops::prod, {0}), x.prod(0)) == "");
}

TEST_CASE("sums and products of bool and of integers below 32 bits are int32, as in keras.ops") {
  const Tensor ones = at::ones({2, 300}, at::kLong), twos = ones.narrow(1, 0, 9).mul(2);
  for (const at::ScalarType dtype : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt}) {
    INFO(dtype);
    CHECK(wrong_values({ones.to(dtype)}, over(ops::sum, {1}), at::full({2}, 300, at::kInt)) == "");
    CHECK(wrong_values({ones.to(dtype)}, over(ops::sum, {}), at::full({}, 600, at::kInt)) == "");
    const Tensor power = at::full({2}, dtype == at::kBool ? 1 : 512, at::kInt);
    CHECK(wrong_values({twos.to(dtype)}, over(ops::prod, {1}), power) == "");
    const DTensor none = one_device(at::ones({0, 2}, dtype));
    CHECK(ops::sum(none, {0}).dtype() == at::kInt);
    CHECK(ops::prod(none, {0}).dtype() == at::kInt);
  }
  CHECK(ops::sum(one_device(at::ones({}, at::kBool))).dtype() == at::kInt);
  CHECK(ops::sum(one_device(ones)).dtype() == at::kLong);
}

TEST_CASE("float16 and bfloat16 are summed between devices in float32, and rounded once") {
  const Mesh mesh = virtual_mesh({4});
  // In bfloat16, the devices' sums 257, 1, 1 and 1 would be 256, 1, 1 and 1.
  const Tensor x = at::tensor({256.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0}).to(at::kBFloat16);
  const DTensor sharded = pack(x, Layout(LayoutSpec{"x"}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  CHECK(ops::sum(sharded).full().item<float>() == 260);
  CHECK(ops::mean(sharded).full().item<float>() == 32.5F);
  CHECK(log.count(CommOp::all_reduce, "x") == 2);
  CHECK(log.entries().size() == 2);
  CHECK(log.entries()[0].bytes == 4);
  // The first device's sum 120000 would be infinite in float16.
  const Tensor large = at::tensor({6e4, 6e4, -6e4, -4.8e4}).to(at::kHalf);
  const DTensor halves = pack(large, Layout(LayoutSpec{"x"}, virtual_mesh({2})));
  CHECK(ops::sum(halves).full().item<float>() == 12000);
}

TEST_CASE("means of bfloat16 are rounded once") {
  // As a bfloat16, their sum would be 4992, and the mean 0.996.
  const Tensor ones = at::ones({5003}, at::kBFloat16);
  CHECK(wrong_values({ones}, over(ops::mean, {}), ones[0], 0) == "");
  const Tensor rows = at::ones({2, 5003}, at::kBFloat16);
  CHECK(wrong_values({rows}, over(ops::mean, {1}, true), rows.narrow(1, 0, 1), 0) == "");
}

TEST_CASE("sum, prod, all and any of nothing are their identities") {
  const Tensor x = at::randn({0, 3}, at::kDouble);
  CHECK(wrong_values({x}, over(ops::sum, {0}), at::zeros({3}, at::kDouble)) == "");
  CHECK(wrong_values({x}, over(ops::prod, {0}), at::ones({3}, at::kDouble)) == "");
  CHECK(wrong_values({x.to(at::kLong)}, over(ops::prod, {}), at::ones({}, at::kLong)) == "");
  CHECK(wrong_values({x.to(at::kBool)}, over(ops::all, {0}), at::ones({3}, at::kBool)) == "");
  CHECK(wrong_values({x.to(at::kBool)}, over(ops::any, {0}), at::zeros({3}, at::kBool)) == "");
  CHECK(wrong_values({x}, over(ops::sum, {1}), at::zeros({0}, at::kDouble)) == "");
}

TEST_CASE("max, min and mean of nothing are refused") {
  const DTensor x = one_device(at::randn({0, 3}));
  for (const Reduction function : std::initializer_list<Reduction>{ops::max, ops::min, ops::mean,
                                                                   ops::variance, ops::logsumexp}) {
    CHECK_THROWS_AS(function(x, {0}, false), ShapeError);
  }
  CHECK_THROWS_AS(ops::argmax(x, 0), ShapeError);
}

TEST_CASE("argmax and argmin return the first of equal elements, also across shards") {
  const Tensor x = at::tensor({2, 7, 7, 1, 7, 1, 5, 1}, at::kDouble);
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::argmax(in[0]); },
            at::scalar_tensor(1, at::kLong), 0) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::argmin(in[0]); },
            at::scalar_tensor(3, at::kLong), 0) == "");
  CHECK(wrong_values(
            {at::ones({7}, at::kLong)}, [](const Inputs& in) { return ops::argmax(in[0]); },
            at::scalar_tensor(0, at::kLong), 0) == "");
  const Tensor truths = at::tensor({0, 0, 1, 0, 1}).to(at::kBool);
  CHECK(wrong_values(
            {truths}, [](const Inputs& in) { return ops::argmax(in[0]); },
            at::scalar_tensor(2, at::kLong), 0) == "");
  CHECK(wrong_values(
            {truths}, [](const Inputs& in) { return ops::argmin(in[0]); },
            at::scalar_tensor(0, at::kLong), 0) == "");
  const Tensor cube = at::randint(0, 4, {3, 5, 4}, at::kDouble);
  for (int64_t axis : {0, 1, -1}) {
    CHECK(wrong_values(
              {cube}, [&](const Inputs& in) { return ops::argmax(in[0], axis); },
              at::argmax(cube, axis), 0) == "");
    CHECK(wrong_values(
              {cube}, [&](const Inputs& in) { return ops::argmin(in[0], axis); },
              at::argmin(cube, axis), 0) == "");
  }
}

TEST_CASE("NaN counts as the extreme in every layout, as in ATen") {
  const Tensor x = at::tensor({1.0, 9.0, NAN, 3.0, NAN, 2.0}, at::kDouble);
  CHECK(wrong_values({x}, over(ops::max, {0}), at::scalar_tensor(NAN, at::kDouble), 0) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::argmin(in[0]); },
            at::scalar_tensor(2, at::kLong), 0) == "");
}

TEST_CASE("logsumexp is stable for large values, also infinite ones") {
  const Tensor large =
      at::tensor({1000.0, 999.0, -1000.0, 1000.0, 5.0, 1.0}, at::kDouble).view({2, 3});
  CHECK(wrong_values({large}, over(ops::logsumexp, {1}), at::logsumexp(large, 1)) == "");
  CHECK(wrong_values({large}, over(ops::logsumexp, {}, true),
                     at::logsumexp(large, at::IntArrayRef{0, 1}, true)) == "");
  const Tensor infinite =
      at::tensor({-INFINITY, -INFINITY, 1.0, -INFINITY, INFINITY, 0.0}, at::kDouble).view({3, 2});
  const Tensor expected = at::tensor({-INFINITY, 1.0, INFINITY}, at::kDouble);
  CHECK(wrong_values({infinite}, over(ops::logsumexp, {1}), expected, 0) == "");
}

TEST_CASE("moments keep the variance under a large mean") {
  const Tensor x = at::randn({4, 6}, at::kFloat).mul(0.01).add(1000);
  const Tensor exact = x.to(at::kDouble);
  const DTensor value = pack(x, Layout(LayoutSpec{"x", "y"}, virtual_mesh({2, 2})));
  const auto [mean, variance] = ops::moments(value, {0, 1});
  CHECK(difference(mean.full().to(at::kDouble), exact.mean(), 1e-6) == "");
  CHECK(difference(variance.full().to(at::kDouble), exact.var(false), 1e-2) == "");
}

TEST_CASE("moments and biased variance match ATen in every layout") {
  const Tensor x = at::randn({3, 5, 2}, at::kDouble);
  CHECK(wrong_values({x}, over(ops::variance, {0, 2}), at::var(x, at::IntArrayRef{0, 2}, false)) ==
        "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::moments(in[0], {1}).first; }, x.mean(1)) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::moments(in[0], {1}, true).second; },
            at::var(x, at::IntArrayRef{1}, false, true)) == "");
}

TEST_CASE("gradients of reductions match finite differences") {
  const Tensor x = at::randn({3, 4, 2}, at::kDouble);
  for (const Reduction function : std::initializer_list<Reduction>{
           ops::sum, ops::mean, ops::max, ops::min, ops::prod, ops::logsumexp, ops::variance}) {
    CHECK(wrong_gradients({x}, over(function, {0, 2})) == "");
    CHECK(wrong_gradients({x}, over(function, {1}, true)) == "");
  }
}

TEST_CASE("the product's gradient is correct beside zeros") {
  const Tensor x = at::tensor({2.0, 0.0, 3.0, 0.0, 4.0, 0.0}, at::kDouble).view({2, 3});
  CHECK(wrong_gradients({x}, over(ops::prod, {1})) == "");
}

TEST_CASE("a sharded axis leaves one partial sum, moments two") {
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor x = pack(at::randn({4, 6}), Layout({"x", "y"}, mesh));
  CommLog log;
  const CommLogScope scope(log);
  const DTensor total = ops::sum(ops::sum(x, {0}));
  CHECK(total.layout().partial_dims() == 3);
  CHECK(log.to_string() == "");
  total.full();
  CHECK(log.entries().size() == 1);
  log.clear();
  ops::moments(x, {0}).second.full();
  CHECK(log.count(CommOp::all_reduce, "x") == 2);
  CHECK(log.entries().size() == 3);
}

TEST_CASE("reductions refuse axes out of range and unsupported dtypes") {
  const DTensor x = one_device(at::ones({3, 4}));
  CHECK_THROWS_WITH(ops::sum(x, {2}), Contains("[sum]") && !Contains("\n"));
  CHECK_THROWS_WITH(ops::argmin(x, 5), Contains("[argmin]"));
  CHECK_THROWS_AS(ops::all(x), ConfigError);
  CHECK_THROWS_AS(ops::mean(one_device(at::ones({3}, at::kLong))), ConfigError);
}

}  // namespace reduce_test
