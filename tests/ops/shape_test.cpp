#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace shape_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using at::Tensor;
using Inputs = std::vector<DTensor>;

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

Function reshaped(Shape shape) {
  return [shape](const Inputs& in) { return ops::reshape(in[0], shape); };
}

}  // namespace

TEST_CASE("reshape keeps the row-major order in every layout") {
  const Tensor x = at::randn({4, 3, 2}, at::kDouble);
  for (const Shape& shape : std::vector<Shape>{
           {24}, {12, 2}, {4, 6}, {2, 2, 6}, {3, 8}, {1, 24, 1}, {2, 2, 3, 2}, {6, 4}}) {
    INFO(tessera::to_string(shape));
    CHECK(wrong_values({x}, reshaped(shape), x.reshape(shape)) == "");
  }
  CHECK(wrong_values({x}, reshaped({-1, 8}), x.reshape({3, 8})) == "");
  CHECK(wrong_values({x[0][0]}, reshaped({2, 1}), x[0][0].reshape({2, 1})) == "");
  CHECK(wrong_values({x[0][0][0]}, reshaped({1, 1}), x[0][0][0].reshape({1, 1})) == "");
  CHECK(wrong_gradients({x}, reshaped({3, 8})) == "");
}

TEST_CASE("reshape of an empty tensor is empty") {
  const Tensor x = at::randn({0, 3}, at::kDouble);
  CHECK(wrong_values({x}, reshaped({3, 0, 2}), at::empty({3, 0, 2}, at::kDouble)) == "");
}

TEST_CASE("flatten, expand_dims and squeeze") {
  const Tensor x = at::randn({3, 1, 4}, at::kDouble);
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::flatten(in[0], 1); }, x.flatten(1)) == "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::expand_dims(in[0], -1); }, x.unsqueeze(-1)) ==
        "");
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::squeeze(in[0], {1}); }, x.squeeze(1)) == "");
}

TEST_CASE("flatten keeps the batch axis' sharding for free") {
  const Mesh mesh = virtual_mesh({2, 2});
  CommLog log;
  const CommLogScope scope(log);
  const DTensor x = pack(at::randn({4, 6, 3}), Layout({"x", "y", unsharded}, mesh));
  CHECK(ops::flatten(x, 1).layout() == Layout(LayoutSpec{"x", "y"}, mesh));
  CHECK(log.to_string() == "");
}

TEST_CASE("transpose permutes axes and their sharding") {
  const Tensor x = at::randn({2, 3, 4}, at::kDouble);
  CHECK(wrong_values(
            {x}, [](const Inputs& in) { return ops::transpose(in[0]); }, x.permute({2, 1, 0})) ==
        "");
  const auto rolled = [](const Inputs& in) { return ops::transpose(in[0], {-1, 0, 1}); };
  CHECK(wrong_values({x}, rolled, x.permute({2, 0, 1})) == "");
  CHECK(wrong_gradients({x}, rolled) == "");
  const Mesh mesh = virtual_mesh({2, 2});
  const DTensor value = pack(x, Layout({"x", unsharded, "y"}, mesh));
  CHECK(ops::transpose(value).layout() == Layout({"y", unsharded, "x"}, mesh));
}

TEST_CASE("broadcast_to and tile repeat in every layout") {
  const Tensor x = at::randn({3, 1}, at::kDouble), row = at::randn({4}, at::kDouble);
  const auto wide = [](const Inputs& in) { return ops::broadcast_to(in[0], {2, 3, 4}); };
  CHECK(wrong_values({x}, wide, x.expand({2, 3, 4})) == "");
  CHECK(wrong_values({row}, wide, row.expand({2, 3, 4})) == "");
  CHECK(wrong_gradients({x}, wide) == "");
  const Tensor y = at::randn({2, 3}, at::kDouble);
  const auto tiled = [](const Inputs& in) { return ops::tile(in[0], {2, 3}); };
  CHECK(wrong_values({y}, tiled, y.repeat({2, 3})) == "");
  CHECK(wrong_gradients({y}, tiled) == "");
  CHECK(wrong_values(
            {y},
            [](const Inputs& in) {
              return ops::tile(in[0], {0, 1});
            },
            at::empty({0, 3}, at::kDouble)) == "");
}

TEST_CASE("stop_gradient passes the value and no gradient") {
  const DTensor x = one_device(at::tensor({2.0, 3.0}, at::kDouble));
  GradientTape tape;
  tape.watch(x);
  const DTensor y = x * ops::stop_gradient(x);
  CHECK(difference(y.full(), at::tensor({4.0, 9.0}, at::kDouble)) == "");
  CHECK(difference(tape.gradient(y, x).full(), x.full()) == "");
}

TEST_CASE("relayout and copy_to_mesh return gradients in the value's layout") {
  const Mesh mesh = virtual_mesh({2, 2}), other = virtual_mesh({3});
  const Tensor full = at::randn({4, 5}, at::kDouble);
  const DTensor x = pack(full, Layout({"x", unsharded}, mesh));
  GradientTape tape;
  tape.watch(x);
  const DTensor moved = relayout(x, Layout({unsharded, "y"}, mesh));
  const DTensor there = copy_to_mesh(moved * moved, Layout({"x", unsharded}, other));
  const DTensor gradient = tape.gradient(there, x);
  CHECK(there.mesh() == other);
  CHECK(gradient.layout() == x.layout());
  CHECK(difference(gradient.full(), full * 2, 1e-12) == "");
  CHECK(relayout_like(x, moved).layout() == moved.layout());
}

TEST_CASE("invalid shapes are refused in one line") {
  const DTensor x = one_device(at::randn({3, 4}));
  CHECK_THROWS_WITH(ops::reshape(x, {5, 2}),
                    Contains("[reshape]") && Contains("(3, 4) to (5, 2)") && !Contains("\n"));
  CHECK_THROWS_AS(ops::reshape(x, {-1, -1}), ShapeError);
  CHECK_THROWS_AS(ops::reshape(x, {-1, 5}), ShapeError);
  CHECK_THROWS_AS(ops::reshape(x, {-2, 6}), ShapeError);
  CHECK_THROWS_AS(ops::flatten(x, 3), ShapeError);
  CHECK_THROWS_AS(ops::flatten(x, -3), ShapeError);
  CHECK_THROWS_AS(ops::expand_dims(x, 4), ShapeError);
  CHECK_THROWS_AS(ops::squeeze(x, {0}), ShapeError);
  CHECK_THROWS_AS(ops::transpose(x, {0, 0}), ShapeError);
  CHECK_THROWS_AS(ops::transpose(x, {0}), ShapeError);
  CHECK_THROWS_AS(ops::transpose(x, {0, 2}), ShapeError);
  CHECK_THROWS_AS(ops::broadcast_to(x, {3, 5}), ShapeError);
  CHECK_THROWS_AS(ops::broadcast_to(x, {4}), ShapeError);
  CHECK_THROWS_AS(ops::broadcast_to(x, {-1, 4}), ShapeError);
  CHECK_THROWS_AS(ops::tile(x, {2}), ShapeError);
  CHECK_THROWS_AS(ops::tile(x, {2, -1}), ShapeError);
}

}  // namespace shape_test
