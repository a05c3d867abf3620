#include <tessera/layers/reshaping/reshape.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace flatten_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

test::LayerTest made(const Shape& input, const Shape& output) {
  return {.make = [] { return Flatten(); },
          .input = {input},
          .output = output,
          .config = {{"data_format", "channels_last"}}};
}

}  // namespace

TEST_CASE("Flatten under every layout") {
  test::run_layer_test(made({5, 3, 4}, {5, 12}));
  test::run_layer_test(made({6, 4}, {6, 4}));
  test::run_layer_test(made({3}, {3, 1}));
  test::run_layer_test(made({4, 2, 3, 2}, {4, 12}));
}

TEST_CASE("Flatten with the channels first") {
  test::LayerTest test = made({3, 2, 5, 2}, {3, 20});
  test.make = [] { return Flatten({.data_format = "channels_first"}); };
  test.config["data_format"] = "channels_first";
  test::run_layer_test(test);
  const at::Tensor x = at::arange(12).reshape({2, 2, 3});
  const DTensor y =
      Flatten({.data_format = "channels_first"})(pack(x, Layout::replicated(default_mesh(), 3)));
  CHECK(test::difference(y.full(), x.permute({0, 2, 1}).reshape({2, 6})) == "");
  CHECK_THROWS_WITH(Flatten({.data_format = "NHWC"}), Contains("\"NHWC\""));
}

TEST_CASE("Flatten keeps the order of the elements") {
  const at::Tensor x = at::arange(24).reshape({2, 3, 4});
  const DTensor y = Flatten()(pack(x, Layout::replicated(default_mesh(), 3)));
  CHECK(test::difference(y.full(), at::arange(24).reshape({2, 12})) == "");
}

TEST_CASE("Flatten takes every option by name and refuses scalars") {
  const LayerHandle layer = Flatten({.name = "flat", .dtype = "float64", .trainable = false});
  CHECK(layer->config() == Json{{"name", "flat"},
                                {"trainable", false},
                                {"dtype", "float64"},
                                {"data_format", "channels_last"}});
  CHECK_THROWS_WITH(layer->build({{}}), Contains("[Flatten flat]") && Contains("Received: ()"));
  CHECK_THROWS_WITH(layer->build({{1, 2}, {1, 2}}), Contains("2 inputs"));
}

}  // namespace flatten_test
