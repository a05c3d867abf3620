#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/norm.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace norm_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;
using ops::Axes;
using ops::NormOrder;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

Function norm(const NormOrder& order, const Axes& axes, bool keepdims = false) {
  return [=](const Inputs& in) { return ops::norm(in[0], order, axes, keepdims); };
}

Tensor numbers(const Shape& shape) {
  return random_values({shape, at::kDouble, 0.2, 3, /*distinct=*/true}, 8);
}

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

}  // namespace

TEST_CASE("norms of vectors match ATen in every layout, with their gradients") {
  const Tensor x = numbers({4, 3});
  for (double order : std::vector<double>{0, 1, 2, 3, INFINITY, -INFINITY}) {
    INFO("order " << order);
    CHECK(wrong_values({x}, norm(order, {1}),
                       at::linalg_vector_norm(x, order, at::IntArrayRef{1})) == "");
    CHECK(wrong_values({x}, norm(order, {0}, true),
                       at::linalg_vector_norm(x, order, at::IntArrayRef{0}, true)) == "");
    if (order != 0) CHECK(wrong_gradients({x}, norm(order, {1})) == "");
  }
  CHECK(wrong_values({x}, norm({}, {}), x.square().sum().sqrt()) == "");
  CHECK(wrong_values({x}, norm({}, {-1}), x.square().sum(1).sqrt()) == "");
}

TEST_CASE("norms of matrices match ATen in every layout, with their gradients") {
  const Tensor x = numbers({4, 2, 5});
  const Tensor sums = x.permute({1, 0, 2}).abs();
  CHECK(wrong_values({x}, norm("fro", {0, 2}), x.square().sum(2).sum(0).sqrt()) == "");
  CHECK(wrong_values({x}, norm(1, {0, 2}), sums.sum(1).amax(1)) == "");
  CHECK(wrong_values({x}, norm(-1, {0, 2}), sums.sum(1).amin(1)) == "");
  CHECK(wrong_values({x}, norm(INFINITY, {0, -1}), sums.sum(2).amax(1)) == "");
  CHECK(wrong_values({x}, norm(-INFINITY, {0, 2}, true), sums.sum(2).amin(1).reshape({1, 2, 1})) ==
        "");
  for (const NormOrder& order : {NormOrder("fro"), NormOrder(1), NormOrder(INFINITY)}) {
    CHECK(wrong_gradients({x}, norm(order, {0, 2})) == "");
  }
}

TEST_CASE("norms of integers are float32, and those of float16 do not overflow") {
  const DTensor integers = ops::norm(one_device(at::tensor({3, 4}, at::kInt)));
  CHECK(difference(integers.full(), at::scalar_tensor(5.0F)) == "");
  const DTensor half = ops::norm(one_device(at::tensor({300.0, 400.0}).to(at::kHalf)));
  CHECK(difference(half.full(), at::scalar_tensor(500.0).to(at::kHalf)) == "");
}

TEST_CASE("normalize divides by the norm, which counts as at least epsilon") {
  const Tensor x = numbers({3, 5});
  for (int64_t order : {1, 2, 3}) {
    const auto unit = [order](const Inputs& in) { return ops::normalize(in[0], 0, order); };
    INFO("order " << order);
    CHECK(wrong_values({x}, unit,
                       x.div(at::linalg_vector_norm(x, double(order), at::IntArrayRef{0}, true))) ==
          "");
    CHECK(wrong_gradients({x}, unit) == "");
    const auto small = [order](const Inputs& in) { return ops::normalize(in[0], 1, order, 1e3); };
    CHECK(wrong_values({x}, small, x.div(1e3)) == "");
  }
  CHECK(ops::normalize(one_device(at::tensor({0.0, 0.0}))).full().eq(0).all().item<bool>());
  // The gradient of a vector of zeros is finite: that of a division by epsilon.
  GradientTape tape;
  const DTensor zeros = one_device(at::tensor({0.0, 0.0}));
  tape.watch(zeros);
  const DTensor total = ops::sum(ops::normalize(zeros, -1, 2, 0.5));
  CHECK(tape.gradient(total, zeros).full().eq(2).all().item<bool>());
}

TEST_CASE("the standard deviation is the root of the variance") {
  const Tensor x = numbers({4, 5});
  const auto deviation = [](const Inputs& in) { return ops::std(in[0], {0}, true); };
  CHECK(wrong_values({x}, deviation, x.var(0, /*unbiased=*/false, true).sqrt()) == "");
  CHECK(wrong_gradients({x}, deviation) == "");
}

TEST_CASE("orders and axes that no norm has are refused") {
  const DTensor x = one_device(at::ones({2, 3, 4}));
  CHECK_THROWS_WITH(ops::norm(x, "nuc", {0, 1}), Contains("[norm]") && Contains("\"nuc\""));
  CHECK_THROWS_AS(ops::norm(x, 2, {0, 1}), ConfigError);
  CHECK_THROWS_AS(ops::norm(x, "fro", {1}), ConfigError);
  CHECK_THROWS_AS(ops::norm(x, 1), ShapeError);
  CHECK_THROWS_AS(ops::norm(x, {}, {0, 0}), ShapeError);
  CHECK_THROWS_AS(ops::norm(x, {}, {3}), ShapeError);
  CHECK_THROWS_AS(ops::normalize(x, -1, 0), ConfigError);
  CHECK_THROWS_AS(ops::normalize(one_device(at::ones({2}, at::kInt))), ConfigError);
}

}  // namespace norm_test
