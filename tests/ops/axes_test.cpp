#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace axes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

Tensor numbers(const Shape& shape) { return random_values({shape, at::kDouble, -1, 1}, 6); }

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

Function diagonal(int64_t offset, int64_t axis1, int64_t axis2) {
  return [=](const Inputs& in) { return ops::diagonal(in[0], offset, axis1, axis2); };
}

}  // namespace

TEST_CASE("swapaxes and moveaxis permute axes and their sharding") {
  const Tensor x = numbers({2, 3, 4});
  const auto swapped = [](const Inputs& in) { return ops::swapaxes(in[0], -1, 0); };
  const auto moved = [](const Inputs& in) { return ops::moveaxis(in[0], {0, 1}, {-1, 0}); };
  CHECK(wrong_values({x}, swapped, x.transpose(0, 2)) == "");
  CHECK(wrong_values({x}, moved, x.movedim({0, 1}, {-1, 0})) == "");
  CHECK(wrong_gradients({x}, moved) == "");
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor value = pack(x, Layout({"x", unsharded, "y"}, mesh));
  CHECK(ops::swapaxes(value, 0, 2).layout() == Layout({"y", unsharded, "x"}, mesh));
  CHECK_THROWS_AS(ops::swapaxes(value, 0, 3), ShapeError);
  CHECK_THROWS_AS(ops::moveaxis(value, {0, 0}, {1, 2}), ShapeError);
  CHECK_THROWS_AS(ops::moveaxis(value, {0, 1}, {2, 2}), ShapeError);
  CHECK_THROWS_AS(ops::moveaxis(value, {0}, {1, 2}), ShapeError);
}

TEST_CASE("rot90, fliplr, flipud and ravel match ATen in every layout") {
  const Tensor x = numbers({3, 5, 2});
  for (int64_t k : {0, 1, 2, 3, -1, 6}) {
    INFO("k " << k);
    CHECK(wrong_values(
              {x}, [k](const Inputs& in) { return ops::rot90(in[0], k); }, x.rot90(k, {0, 1})) ==
          "");
  }
  const auto turned = [](const Inputs& in) { return ops::rot90(in[0], 1, {2, 0}); };
  CHECK(wrong_values({x}, turned, x.rot90(1, {2, 0})) == "");
  CHECK(wrong_gradients({x}, turned) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::fliplr(in[0]); }, x.flip(1)) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::flipud(in[0]); }, x.flip(0)) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::ravel(in[0]); }, x.flatten()) == "");
  CHECK_THROWS_AS(ops::rot90(one_device(x), 1, {1, -2}), ShapeError);
  CHECK_THROWS_AS(ops::fliplr(one_device(x[0][0])), ShapeError);
  CHECK_THROWS_AS(ops::flipud(one_device(x[0][0][0])), ShapeError);
}

TEST_CASE("repeat repeats each element, in every layout") {
  const Tensor x = numbers({3, 4});
  const auto twice = [](const Inputs& in) { return ops::repeat(in[0], 2, 0); };
  const auto counts = [](const Inputs& in) { return ops::repeat(in[0], {2, 0, 3, 1}, -1); };
  const Tensor indices = at::tensor({0, 0, 2, 2, 2, 3}, at::kLong);
  CHECK(wrong_values({x}, twice, x.repeat_interleave(2, 0)) == "");
  CHECK(wrong_values({x}, counts, x.index_select(1, indices)) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::repeat(in[0], 3); },
            x.flatten().repeat_interleave(3)) == "");
  CHECK(wrong_gradients({x}, twice) == "");
  CHECK(wrong_gradients({x}, counts) == "");
  CHECK_THROWS_AS(ops::repeat(one_device(x), -1, 0), ShapeError);
  CHECK_THROWS_AS(ops::repeat(one_device(x), {1, -1, 1}, 0), ShapeError);
  CHECK_THROWS_AS(ops::repeat(one_device(x), {1, 2}, 0), ShapeError);
}

TEST_CASE("diag makes a matrix of a vector and a vector of a matrix, in every layout") {
  const Tensor row = numbers({4}), x = numbers({3, 5});
  for (int64_t k : {0, 1, -2, 4}) {
    const auto diag = [k](const Inputs& in) { return ops::diag(in[0], k); };
    INFO("diagonal " << k);
    CHECK(wrong_values({row}, diag, row.diag(k)) == "");
    CHECK(wrong_values({x}, diag, x.diag(k)) == "");
    CHECK(wrong_gradients({row}, diag) == "");
    CHECK(wrong_gradients({x}, diag) == "");
  }
  CHECK_THROWS_AS(ops::diag(one_device(numbers({2, 2, 2}))), ShapeError);
  CHECK_THROWS_AS(ops::diag(one_device(row[0])), ShapeError);
}

TEST_CASE("diagonal and trace take any two axes, in every layout") {
  const Tensor x = numbers({3, 4, 5});
  CHECK(wrong_values({x}, diagonal(0, 0, 1), x.diagonal(0, 0, 1)) == "");
  CHECK(wrong_values({x}, diagonal(2, 1, 2), x.diagonal(2, 1, 2)) == "");
  CHECK(wrong_values({x}, diagonal(-1, 2, 0), x.diagonal(-1, 2, 0)) == "");
  CHECK(wrong_values({x}, diagonal(9, 0, 1), at::empty({5, 0}, at::kDouble)) == "");
  CHECK(wrong_values({x.gt(0)}, diagonal(0, 0, 2), x.gt(0).diagonal(0, 0, 2)) == "");
  CHECK(wrong_gradients({x}, diagonal(1, 0, 2)) == "");
  const auto trace = [](const Inputs& in) { return ops::trace(in[0], 1, 1, 2); };
  CHECK(wrong_values({x}, trace, x.diagonal(1, 1, 2).sum(-1)) == "");
  CHECK(wrong_gradients({x}, trace) == "");
  CHECK_THROWS_AS(ops::diagonal(one_device(x), 0, 1, -2), ShapeError);
  CHECK_THROWS_AS(ops::trace(one_device(x[0][0])), ShapeError);
}

}  // namespace axes_test
