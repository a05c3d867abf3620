#include <tessera/layers/reshaping/reshape.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace reshape_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

test::LayerTest made(const Shape& input, const Shape& target, const Shape& output) {
  return {.make = [target] { return Reshape(target); },
          .input = {input},
          .output = output,
          .config = {{"target_shape", target}}};
}

}  // namespace

TEST_CASE("Reshape under every layout") {
  test::run_layer_test(made({5, 12}, {3, 4}, {5, 3, 4}));
  test::run_layer_test(made({6, 3, 4}, {-1}, {6, 12}));
  test::run_layer_test(made({3, 6, 5}, {2, -1, 3}, {3, 2, 5, 3}));
  test::run_layer_test(made({4, 1}, {}, {4}));
}

TEST_CASE("Reshape keeps the order of the elements") {
  const at::Tensor x = at::arange(24).reshape({2, 3, 4});
  const DTensor y = Reshape({-1, 2})(pack(x, Layout::replicated(default_mesh(), 3)));
  CHECK(test::difference(y.full(), at::arange(24).reshape({2, 6, 2})) == "");
}

TEST_CASE("Reshape keeps unknown extents unknown") {
  const LayerHandle layer = Reshape({3, -1});
  CHECK(layer->output_shape({{-1, 4, -1}}) == Shape{-1, 3, -1});
  CHECK(layer->output_shape({{-1, 4, 6}}) == Shape{-1, 3, 8});
}

TEST_CASE("Reshape takes every option by name and refuses invalid ones") {
  const LayerHandle layer = Reshape({2, 3}, {.name = "r", .dtype = "float64", .trainable = false});
  CHECK(layer->config() ==
        Json{{"name", "r"}, {"trainable", false}, {"dtype", "float64"}, {"target_shape", {2, 3}}});
  CHECK_THROWS_WITH(Reshape({2, -1, -1}), Contains("[Reshape]") && Contains("(2, -1, -1)"));
  CHECK_THROWS_AS(Reshape({2, 0}), ConfigError);
  CHECK_THROWS_AS(Reshape({-2}), ConfigError);
  CHECK_THROWS_AS(Reshape({int64_t{1} << 40, int64_t{1} << 40}), ConfigError);
  CHECK_THROWS_WITH(layer->build({{4, 7}}), Contains("[Reshape r]") && Contains("7 elements") &&
                                                Contains("(2, 3)") && Contains("(4, 7)"));
  CHECK_THROWS_WITH(Reshape({3, -1})->build({{4, 7}}), Contains("(3, -1)"));
  CHECK_THROWS_WITH(layer->build({{}}), Contains("batch axis"));
  CHECK_THROWS_WITH(layer->build({{4, 6}, {4, 6}}), Contains("2 inputs"));
}

}  // namespace reshape_test
