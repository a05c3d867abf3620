#include <tessera/layers/merging/merge.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace concatenate_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

test::LayerTest made(int64_t axis, const Shapes& inputs, const Shape& output) {
  test::LayerTest test{.make = [axis] { return Concatenate({.axis = axis}); },
                       .input = {inputs[0]},
                       .output = output,
                       .config = {{"axis", axis}}};
  for (size_t i = 1; i < inputs.size(); ++i) test.more_inputs.push_back({inputs[i]});
  return test;
}

}  // namespace

TEST_CASE("Concatenate under every layout") {
  test::run_layer_test(made(-1, {{3, 5}, {3, 2}, {3, 1}}, {3, 8}));
  test::run_layer_test(made(1, {{4, 2, 3}, {4, 3, 3}}, {4, 5, 3}));
  test::run_layer_test(made(-1, {{3, 2}}, {3, 2}));
}

TEST_CASE("Concatenate along the batch axis, and of several dtypes") {
  const at::Tensor a = at::arange(6).reshape({2, 3});
  const at::Tensor b = at::arange(9).reshape({3, 3}).to(at::kFloat);
  const auto replicated = [](const at::Tensor& x) {
    return pack(x, Layout::replicated(default_mesh(), x.dim()));
  };
  const DTensor y = Concatenate({.axis = 0})({replicated(a), replicated(b)});
  CHECK(test::difference(y.full(), at::cat({a.to(at::kFloat), b})) == "");
  CHECK(test::difference(Concatenate()({replicated(a), replicated(a)}).full(),
                         at::cat({a, a}, 1)) == "");
}

TEST_CASE("Concatenate infers shapes with unknown extents") {
  CHECK(Concatenate()->output_shape({{-1, 2, 3}, {-1, 2, 4}}) == Shape{-1, 2, 7});
  CHECK(Concatenate()->output_shape({{-1, -1, 3}, {4, 2, -1}}) == Shape{4, 2, -1});
}

TEST_CASE("Concatenate takes every option by name and refuses invalid ones") {
  const LayerHandle layer =
      Concatenate({.axis = 1, .name = "c", .dtype = "float64", .trainable = false});
  CHECK(layer->config() ==
        Json{{"name", "c"}, {"trainable", false}, {"dtype", "float64"}, {"axis", 1}});
  CHECK_THROWS_WITH(layer->build({{4, 2, 3}, {4, 2, 4}}),
                    Contains("[Concatenate c]") && Contains("(4, 2, 3) and (4, 2, 4)"));
  CHECK_THROWS_WITH(layer->build({{4, 2, 3}, {4, 2}}),
                    Contains("equal shapes except along axis 1"));
  CHECK_THROWS_WITH(layer->build({{4}}), Contains("[Concatenate c]"));
  CHECK_THROWS_WITH(layer->build({}), Contains("no inputs"));
}

}  // namespace concatenate_test
