#include <tessera/layers/merging/merge.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace merge_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

template <class Merge>
test::LayerTest made(const Shapes& inputs, const Shape& output) {
  test::LayerTest test{.make = [] { return Merge(); },
                       .input = {inputs[0], at::kDouble, -1, 1, true},
                       .output = output};
  for (size_t i = 1; i < inputs.size(); ++i) {
    test.more_inputs.push_back({inputs[i], at::kDouble, -1, 1, true});
  }
  return test;
}

DTensor replicated(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

}  // namespace

TEMPLATE_TEST_CASE("merges of any number of inputs under every layout", "", Add, Multiply, Average,
                   Maximum, Minimum) {
  test::run_layer_test(made<TestType>({{3, 5}, {3, 5}, {3, 5}}, {3, 5}));
  test::run_layer_test(made<TestType>({{3, 1, 4}, {3, 2, 1}}, {3, 2, 4}));
  test::run_layer_test(made<TestType>({{4, 5}, {4, 3, 5}}, {4, 3, 5}));
  test::run_layer_test(made<TestType>({{4, 3}}, {4, 3}));
}

TEST_CASE("Subtract under every layout") {
  test::run_layer_test(made<Subtract>({{3, 5}, {3, 5}}, {3, 5}));
  test::run_layer_test(made<Subtract>({{4, 3, 5}, {4, 1}}, {4, 3, 5}));
}

TEST_CASE("merges compute their formulas") {
  const at::Tensor a = at::tensor({1.f, -2.f, 6.f}).reshape({1, 3});
  const at::Tensor b = at::tensor({4.f, 8.f, 3.f}).reshape({1, 3});
  const Inputs inputs = {replicated(a), replicated(b)};
  CHECK(difference(Add()(inputs).full(), a + b) == "");
  CHECK(difference(Subtract()(inputs).full(), a - b) == "");
  CHECK(difference(Multiply()(inputs).full(), a * b) == "");
  CHECK(difference(Average()(inputs).full(), (a + b) / 2) == "");
  CHECK(difference(Maximum()(inputs).full(), at::maximum(a, b)) == "");
  CHECK(difference(Minimum()(inputs).full(), at::minimum(a, b)) == "");
}

TEST_CASE("merges of several dtypes") {
  const at::Tensor integers = at::tensor({1, 2, 3}, at::kInt).reshape({1, 3});
  const at::Tensor longer = integers.to(at::kLong);
  const DTensor sum = Add()({replicated(integers), replicated(integers.to(at::kDouble))});
  CHECK(difference(sum.full(), (2 * integers).to(at::kFloat)) == "");
  CHECK(difference(Add()({replicated(integers), replicated(longer)}).full(), 2 * longer) == "");
  CHECK(difference(Average()({replicated(integers), replicated(longer)}).full(),
                   integers.to(at::kFloat)) == "");
}

TEST_CASE("merges infer shapes with unknown extents") {
  CHECK(Add()->output_shape({{-1, 3, 1}, {-1, -1, 5}}) == Shape{-1, -1, 5});
  CHECK(Add()->output_shape({{4, -1}, {-1, 1}}) == Shape{4, -1});
  CHECK(Add()->output_shape({{4, 1}, {-1, -1}}) == Shape{4, -1});
}

TEST_CASE("merges refuse invalid arguments in one line that names them") {
  const LayerHandle layer = Add({.name = "sum", .dtype = "float64", .trainable = false});
  CHECK(layer->config() == Json{{"name", "sum"}, {"trainable", false}, {"dtype", "float64"}});
  CHECK_THROWS_WITH(layer->build({{4, 3}, {4, 2}}),
                    Contains("[Add sum]") && Contains("broadcast") && Contains("(4, 3), (4, 2)"));
  CHECK_THROWS_WITH(layer->build({{4, 3}, {1, 3}}), Contains("batches have one size"));
  CHECK_THROWS_WITH(layer->build({{4, 3}, {}}), Contains("batch axis"));
  CHECK_THROWS_WITH(layer->build({}), Contains("no inputs"));
  CHECK_THROWS_WITH(Subtract()->build({{4, 3}}), Contains("2 inputs"));
  CHECK_THROWS_WITH(Subtract()->build({{4, 3}, {4, 3}, {4, 3}}), Contains("2 inputs"));
}

}  // namespace merge_test
