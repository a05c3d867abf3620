#include <tessera/framework/ops/scatter.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/function_check.hpp"

namespace scatter_test {

using namespace tessera;
using namespace tessera::test;
using Catch::Contains;

namespace {

using Values = std::vector<DTensor>;

DTensor packed(const at::Tensor& x) {
  return pack(x, Layout::replicated(create_mesh({{"batch", 2}}), x.dim()));
}

DTensor placed(const Values& in) { return ops::scatter(in[0], in[1], {4, 3}); }
DTensor replaced_rows(const Values& in) { return ops::scatter_update(in[0], in[1], in[2]); }

}  // namespace

TEST_CASE("scatter adds values with one index, and scatter_update keeps the last one") {
  const at::Tensor index = at::tensor({1, 2, 0, 1, 1, 2, 3, 0}, at::kLong).view({4, 2});
  const at::Tensor values = at::randn({4}, at::kDouble), sums = at::zeros({4, 3}, at::kDouble);
  sums.index_put_({index.select(1, 0), index.select(1, 1)}, values, /*accumulate=*/true);
  CHECK(wrong_values({index, values}, placed, sums) == "");
  CHECK(wrong_gradients({index, values}, placed) == "");
  const at::Tensor x = at::randn({5, 3}, at::kDouble), updates = at::randn({4, 3}, at::kDouble);
  const at::Tensor rows = at::tensor({1, 0, 4, 1}, at::kLong).view({4, 1});
  const at::Tensor expected = x.clone();
  for (int64_t i = 0; i < 4; ++i) expected[rows[i].item<int64_t>()].copy_(updates[i]);
  CHECK(wrong_values({x, rows, updates}, replaced_rows, expected) == "");
  CHECK(wrong_gradients({x, rows, updates}, replaced_rows) == "");
}

TEST_CASE("slice_update replaces a part of x and has gradients") {
  const at::Tensor x = at::randn({5, 4}, at::kDouble), updates = at::randn({2, 3}, at::kDouble);
  const auto update = [](const Values& in) { return ops::slice_update(in[0], {2, 1}, in[1]); };
  const at::Tensor expected = x.clone();
  expected.narrow(0, 2, 2).narrow(1, 1, 3).copy_(updates);
  CHECK(wrong_values({x, updates}, update, expected) == "");
  CHECK(wrong_gradients({x, updates}, update) == "");
}

TEST_CASE("functions that place values by index name invalid arguments") {
  const DTensor x = packed(at::zeros({4, 3})), values = packed(at::ones({2}));
  const auto at_index = [](int64_t row, int64_t column) {
    return packed(at::tensor({row, column, int64_t{0}, int64_t{0}}, at::kLong).view({2, 2}));
  };
  CHECK_THROWS_WITH(ops::scatter(at_index(0, 3), values, {4, 3}), Contains("[0, 3)"));
  CHECK_THROWS_AS(ops::scatter(at_index(-1, 0), values, {4, 3}), ConfigError);
  CHECK_THROWS_AS(ops::scatter(at_index(0, 0), x, {4, 3}), ShapeError);
  CHECK_THROWS_AS(ops::scatter(at_index(0, 0), values, {4}), ShapeError);
  CHECK_THROWS_AS(ops::scatter(x, values, {4, 3}), Error);
  CHECK_THROWS_WITH(ops::scatter_update(x, at_index(0, 0), values, "mul"), Contains("\"add\""));
  CHECK_THROWS_AS(ops::slice_update(x, {3, 0}, packed(at::zeros({2, 3}))), ShapeError);
  CHECK_THROWS_AS(ops::slice_update(x, {0}, packed(at::zeros({2, 3}))), ShapeError);
}

}  // namespace scatter_test
