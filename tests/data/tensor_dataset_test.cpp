#include <tessera/framework/data/tensor_dataset.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace tensor_dataset_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

at::Tensor numbers(const Shape& shape) { return at::arange(numel(shape)).reshape(shape); }

TensorDataset two_inputs() {
  return TensorDataset({.x = {numbers({5, 2}), numbers({5, 3, 1}).to(at::kFloat)},
                        .y = {numbers({5})},
                        .sample_weight = {numbers({5}).to(at::kDouble)}});
}

at::Tensor pick(const at::Tensor& all, const std::vector<int64_t>& rows) {
  return all.index_select(0, at::tensor(rows, at::kLong));
}

}  // namespace

TEST_CASE("rows of all tensors are returned in the requested order") {
  const TensorDataset data = two_inputs();
  CHECK(data.size() == 5);
  CHECK(data.name() == "data");
  CHECK(data.input_shapes() == std::vector<Shape>{{2}, {3, 1}});
  const std::vector<std::vector<int64_t>> cases{{0, 1, 2, 3, 4}, {2, 3}, {4, 0, 0, 3}, {3}, {},
                                                {3, 2},          {0, 2}};
  for (const std::vector<int64_t>& rows : cases) {
    CAPTURE(rows);
    const Examples got = data.get(rows);
    CHECK(got.rows() == int64_t(rows.size()));
    REQUIRE(got.x.size() == 2);
    CHECK(difference(got.x[0], pick(numbers({5, 2}), rows)) == "");
    CHECK(difference(got.x[1], pick(numbers({5, 3, 1}).to(at::kFloat), rows)) == "");
    CHECK(difference(got.y[0], pick(numbers({5}), rows)) == "");
    CHECK(difference(got.sample_weight[0], pick(numbers({5}).to(at::kDouble), rows)) == "");
  }
}

TEST_CASE("labels and weights may be absent") {
  const TensorDataset data(numbers({4, 2}));
  const Examples got = data.get(std::vector<int64_t>{1, 3});
  CHECK(difference(got.x[0], at::tensor({2, 3, 6, 7}, at::kLong).reshape({2, 2})) == "");
  CHECK(got.y.empty());
  CHECK(got.sample_weight.empty());
  CHECK(TensorDataset(numbers({0, 2})).size() == 0);
}

TEST_CASE("rows are copied to new memory, also from non-contiguous tensors") {
  const at::Tensor x = numbers({3, 4}).t();
  const TensorDataset data(x, numbers({4}), "mine");
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{1, 2}, std::vector<int64_t>{2, 1}}) {
    const Examples got = data.get(rows);
    const at::Tensor expected = pick(x, rows).clone();
    CHECK(got.x[0].is_contiguous());
    CHECK(got.x[0].storage().use_count() == 1);
    CHECK(got.x[0].data_ptr() != x.data_ptr());
    CHECK(difference(got.x[0], expected) == "");
  }
}

TEST_CASE("take() returns the first rows and shares the memory") {
  const at::Tensor x = numbers({5, 2});
  const TensorDataset data(x, numbers({5}), "mine");
  const TensorDataset head = data.take(3);
  CHECK(head.size() == 3);
  CHECK(head.name() == "mine");
  CHECK(difference(head.get(std::vector<int64_t>{2, 0}).x[0], pick(x, {2, 0})) == "");
  CHECK_THROWS_WITH(head.get(std::vector<int64_t>{3}), Contains("[mine] a row number lies in"));
  CHECK(data.take(0).size() == 0);
  CHECK_THROWS_WITH(data.take(6), Contains("[mine] take() returns 0 to 5 rows. Received: 6"));
  CHECK_THROWS_AS(data.take(-1), ConfigError);
}

TEST_CASE("tensors that do not form a dataset are refused by name") {
  CHECK_THROWS_WITH(TensorDataset(Examples{}), Contains("[data] a dataset has at least one input"));
  CHECK_THROWS_WITH(TensorDataset(at::Tensor()), Contains("[data, x]") && Contains("undefined"));
  CHECK_THROWS_WITH(TensorDataset(at::zeros({})), Contains("[data, x]") && Contains("shape ()"));
  CHECK_THROWS_WITH(TensorDataset(numbers({3, 2}).to_sparse()), Contains("dense tensors"));
  CHECK_THROWS_WITH(TensorDataset(numbers({3, 2}), numbers({4}), "mine"),
                    Contains("[mine, y] all tensors of a dataset have equally many rows. "
                             "Received: 4 rows, but 3 in the first input."));
  CHECK_THROWS_WITH(TensorDataset({.x = {numbers({3, 2}), numbers({2, 2})}}),
                    Contains("[data, x[1]]"));
  CHECK_THROWS_WITH(TensorDataset({.x = {numbers({3, 2})}, .sample_weight = {numbers({1})}}),
                    Contains("[data, sample_weight]"));
}

TEST_CASE("a row out of range is refused") {
  const TensorDataset data = two_inputs();
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{5}, std::vector<int64_t>{-1}, std::vector<int64_t>{4, 5},
        std::vector<int64_t>{0, 7, 1}}) {
    CHECK_THROWS_AS(data.get(rows), ShapeError);
  }
}

TEST_CASE("all rows of a data set are tensors in its order") {
  const Examples all = all_rows(DatasetHandle(two_inputs()));
  CHECK(difference(all.x[1], numbers({5, 3, 1}).to(at::kFloat)) == "");
  CHECK(difference(all.y[0], numbers({5})) == "");
  CHECK(difference(all.sample_weight[0], numbers({5}).to(at::kDouble)) == "");
  CHECK_THROWS_WITH(all_rows(DatasetHandle()), Contains("[all_rows]"));
}

}  // namespace tensor_dataset_test
