#include <tessera/framework/ops/custom_op.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"

namespace custom_op_test {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::Contains;
using Blocks = std::span<const at::Tensor>;
using Values = std::vector<DTensor>;

namespace {

const ops::CustomOp softplus("own_softplus",
                             {.forward = [](Blocks x) { return at::softplus(x[0]); },
                              .gradient =
                                  [](const Values& x, const DTensor&, const DTensor& dy) {
                                    return Values{dy * ops::sigmoid(x[0])};
                                  }});

/// a / b, with b broadcast over rows as in NumPy; the gradient also reads the output.
const ops::CustomOp divide_rows(
    "own_divide_rows", {.rule = "b n, b . -> b n",
                        .forward = [](Blocks x) { return x[0] / x[1]; },
                        .gradient =
                            [](const Values& x, const DTensor& y, const DTensor& dy) {
                              return Values{dy / x[1], ops::sum(-dy * y / x[1], {1}, true)};
                            }});

const ops::CustomOp product("own_product",
                            {.rule = "b m k, k n -> b m n",
                             .forward = [](Blocks x) { return at::matmul(x[0], x[1]); },
                             .gradient =
                                 [](const Values& x, const DTensor&, const DTensor& dy) {
                                   return Values{
                                       ops::matmul(dy, ops::transpose(x[1], {1, 0})),
                                       ops::sum(ops::matmul(ops::transpose(x[0], {0, 2, 1}), dy),
                                                {0})};
                                 }});

const ops::CustomOp sort_rows("own_sort_rows", {.rule = "b !n -> b !n", .forward = [](Blocks x) {
                                                  return std::get<0>(x[0].sort(1));
                                                }});

/// The rule does not determine the extent of k, so `shape` does.
const ops::CustomOp first_two("own_first_two",
                              {.rule = "b !n -> b !k",
                               .forward = [](Blocks x) { return x[0].narrow(1, 0, 2); },
                               .shape =
                                   [](const std::vector<Shape>& in) {
                                     return Shape{in[0][0], 2};
                                   }});

Function calling(const ops::CustomOp& op) {
  return [&op](const Values& in) { return op(in); };
}

at::Tensor numbers(const Shape& shape) { return at::rand(shape, at::kDouble) + 0.5; }

DTensor on_two(const at::Tensor& full) {
  const Mesh mesh = create_mesh({{"batch", 2}});
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

}  // namespace

TEST_CASE("user-defined operations give correct values in every layout") {
  const at::Tensor x = numbers({5, 3}), scale = numbers({5, 1});
  CHECK(wrong_values({x}, calling(softplus), at::softplus(x)) == "");
  CHECK(wrong_values(
            {numbers({})}, [](const Values& in) { return softplus({in[0] * 0.0}); },
            at::softplus(at::zeros({}, at::kDouble))) == "");
  CHECK(wrong_values({x, scale}, calling(divide_rows), x / scale) == "");
  const at::Tensor a = numbers({2, 3, 5}), b = numbers({5, 4});
  CHECK(wrong_values({a, b}, calling(product), at::matmul(a, b)) == "");
  CHECK(wrong_values({x}, calling(sort_rows), std::get<0>(x.sort(1))) == "");
  CHECK(wrong_values({x}, calling(first_two), x.narrow(1, 0, 2)) == "");
}

TEST_CASE("user-defined operations give correct gradients in every layout") {
  CHECK(wrong_gradients({numbers({5, 3})}, calling(softplus)) == "");
  CHECK(wrong_gradients({numbers({5, 3}), numbers({5, 1})}, calling(divide_rows)) == "");
  CHECK(wrong_gradients({numbers({2, 3, 5}), numbers({5, 4})}, calling(product)) == "");
}

TEST_CASE("a user-defined operation communicates what its rule requires") {
  const DTensor x = on_two(numbers({4, 6}));
  CommLog comm;
  const CommLogScope scope(comm);
  CHECK(softplus({x}).layout() == x.layout());
  CHECK(sort_rows({x}).layout() == x.layout());
  CHECK(comm.to_string() == "");
  const DTensor columns = ops::relayout(x, Layout({unsharded, "batch"}, x.mesh()));
  comm.clear();
  CHECK(difference(sort_rows({columns}).full(), std::get<0>(x.full().sort(1))) == "");
  CHECK(comm.to_string() != "");
}

TEST_CASE("a user-defined operation without a gradient has none") {
  const DTensor x = on_two(numbers({4, 6}));
  GradientTape tape;
  tape.watch(x);
  CHECK_THROWS_WITH(tape.gradient(ops::sum(sort_rows({x})), x), Contains("own_sort_rows"));
}

TEST_CASE("invalid user-defined operations are refused in one line") {
  const auto identity = [](Blocks x) { return x[0]; };
  CHECK_THROWS_WITH(ops::CustomOp("", {.forward = identity}), Contains("has a name"));
  CHECK_THROWS_WITH(ops::CustomOp("f", {}), Contains("[f]") && Contains(".forward"));
  CHECK_THROWS_WITH(ops::CustomOp("f", {.rule = "b n", .forward = identity}),
                    Contains("one output"));
  CHECK_THROWS_WITH(ops::CustomOp("f", {.rule = "b -> b k", .forward = identity}),
                    Contains("each axis of the output"));
  CHECK_THROWS_WITH(ops::CustomOp("f", {.rule = "~h -> h", .forward = identity}),
                    Contains("window"));
  const DTensor x = on_two(numbers({4, 6}));
  CHECK_THROWS_WITH(product({x, x}), Contains("own_product") && Contains("(4, 6), (4, 6)"));
  CHECK_THROWS_WITH(product({on_two(numbers({2, 3, 5})), x}), Contains("5 and 4"));
  CHECK_THROWS_WITH(softplus({}), Contains("none"));
  const ops::CustomOp sum_all("own_sum", {.forward = [](Blocks in) { return in[0].sum(); }});
  CHECK_THROWS_WITH(sum_all({x}),
                    Contains("own_sum") && Contains("float64 (2, 6)") && Contains("float64 ()"));
  const ops::CustomOp narrow("own_narrow",
                             {.forward = [](Blocks in) { return in[0].to(at::kFloat); }});
  CHECK_THROWS_WITH(narrow({x}), Contains("float32 (2, 6)"));
  const auto after = [&](const Values& gradients) {
    const ops::CustomOp op("own_op", {.forward = identity,
                                      .gradient = [&](const Values&, const DTensor&,
                                                      const DTensor&) { return gradients; }});
    GradientTape tape;
    tape.watch(x);
    tape.gradient(ops::sum(op({x})), x);
  };
  CHECK_THROWS_WITH(after({}), Contains("own_op") && Contains("each of 1 inputs"));
  CHECK_THROWS_WITH(after({ops::sum(x)}), Contains("gradient of input 0") && Contains("(4, 6)"));
}

}  // namespace custom_op_test
