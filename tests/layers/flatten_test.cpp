#include <tessera/layers/flatten.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("Flatten under every layout") {
  test::run_layer_test({.make = [] { return Flatten(); }, .input = {{5, 3, 4}}, .output = {5, 12}});
  test::run_layer_test({.make = [] { return Flatten(); }, .input = {{6, 4}}, .output = {6, 4}});
  test::run_layer_test({.make = [] { return Flatten(); }, .input = {{3}}, .output = {3, 1}});
  test::run_layer_test(
      {.make = [] { return Flatten(); }, .input = {{4, 2, 3, 2}}, .output = {4, 12}});
}

TEST_CASE("Flatten keeps the order of the elements") {
  const at::Tensor x = at::arange(24).reshape({2, 3, 4});
  const DTensor y = Flatten()(pack(x, Layout::replicated(default_mesh(), 3)));
  CHECK(test::difference(y.full(), at::arange(24).reshape({2, 12})) == "");
}

TEST_CASE("Flatten takes every option by name and refuses scalars") {
  const LayerHandle layer = Flatten({.name = "flat", .dtype = "float64", .trainable = false});
  CHECK(layer->config() == Json{{"name", "flat"}, {"trainable", false}, {"dtype", "float64"}});
  CHECK_THROWS_WITH(layer->build({{}}), Contains("[Flatten flat]") && Contains("Received: ()"));
  CHECK_THROWS_WITH(layer->build({{1, 2}, {1, 2}}), Contains("2 inputs"));
}
