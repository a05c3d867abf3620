#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace products_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

Tensor numbers(const Shape& shape, uint64_t seed) {
  return random_values({shape, at::kDouble, -1, 1}, seed);
}

DTensor dot(const Inputs& in) { return ops::dot(in[0], in[1]); }
DTensor inner(const Inputs& in) { return ops::inner(in[0], in[1]); }
DTensor vdot(const Inputs& in) { return ops::vdot(in[0], in[1]); }
DTensor outer(const Inputs& in) { return ops::outer(in[0], in[1]); }

}  // namespace

TEST_CASE("dot sums over the last axis and the last but one, in every layout") {
  const Tensor vector = numbers({5}, 1), matrix = numbers({3, 5}, 2), other = numbers({5, 2}, 3);
  const Tensor deep = numbers({2, 5, 3}, 4);
  CHECK(wrong_values({vector, vector}, dot, vector.mul(vector).sum()) == "");
  CHECK(wrong_values({matrix, vector}, dot, at::matmul(matrix, vector)) == "");
  CHECK(wrong_values({matrix, other}, dot, at::matmul(matrix, other)) == "");
  CHECK(wrong_values({matrix, deep}, dot, at::einsum("ij,kjl->ikl", {matrix, deep})) == "");
  CHECK(wrong_values({vector[0], matrix}, dot, matrix.mul(vector[0])) == "");
  CHECK(wrong_gradients({matrix, other}, dot) == "");
  CHECK(wrong_gradients({matrix, vector}, dot) == "");
}

TEST_CASE("inner, vdot and outer match ATen in every layout") {
  const Tensor a = numbers({2, 5}, 1), b = numbers({3, 5}, 2), c = numbers({5, 2}, 3);
  CHECK(wrong_values({a, b}, inner, at::matmul(a, b.t())) == "");
  CHECK(wrong_values({a, c}, vdot, a.flatten().mul(c.flatten()).sum()) == "");
  CHECK(wrong_values({a, b[0]}, outer, a.flatten().unsqueeze(1).mul(b[0])) == "");
  CHECK(wrong_gradients({a, b}, inner) == "");
  CHECK(wrong_gradients({a, c}, vdot) == "");
  CHECK(wrong_gradients({a, b[0]}, outer) == "");
}

TEST_CASE("tensordot sums over pairs of axes, in every layout") {
  const Tensor a = numbers({2, 3, 4}, 1), b = numbers({3, 4, 2}, 2), c = numbers({4, 2}, 3);
  const auto last = [](const Inputs& in) { return ops::tensordot(in[0], in[1]); };
  const auto none = [](const Inputs& in) { return ops::tensordot(in[0], in[1], 0); };
  const auto named = [](const Inputs& in) { return ops::tensordot(in[0], in[1], {-1, 0}, {0, 1}); };
  CHECK(wrong_values({a, b}, last, at::tensordot(a, b, {1, 2}, {0, 1})) == "");
  CHECK(wrong_values({c, c[0]}, none, at::tensordot(c, c[0], {}, {})) == "");
  CHECK(wrong_values({a, c}, named, at::tensordot(a, c, {2, 0}, {0, 1})) == "");
  CHECK(wrong_gradients({a, c}, named) == "");
}

TEST_CASE("products refuse axes that do not fit") {
  const Mesh mesh = virtual_mesh({1});
  const DTensor a = pack(at::ones({2, 3}), Layout::replicated(mesh, 2));
  const DTensor b = pack(at::ones({4}), Layout::replicated(mesh, 1));
  CHECK_THROWS_WITH(ops::dot(a, b),
                    Catch::Contains("[dot]") && Catch::Contains("Received: (2, 3) and (4,)"));
  CHECK_THROWS_AS(ops::inner(a, b), ShapeError);
  CHECK_THROWS_AS(ops::vdot(a, b), ShapeError);
  CHECK_THROWS_AS(ops::tensordot(a, b), ShapeError);
  CHECK_THROWS_AS(ops::tensordot(a, a, -1), ShapeError);
  CHECK_THROWS_AS(ops::tensordot(a, a, {0, 0}, {0, 1}), ShapeError);
  CHECK_THROWS_AS(ops::tensordot(a, a, {0}, {0, 1}), ShapeError);
}

}  // namespace products_test
