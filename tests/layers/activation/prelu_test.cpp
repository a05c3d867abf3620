#include <tessera/layers/activation/activation.hpp>

#include <tessera/framework/nn/layer_registry.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace prelu_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("PReLU under every layout of inputs and slopes") {
  test::run_layer_test(
      {.make =
           [] {
             return PReLU(
                 {.alpha_initializer = "he_normal", .alpha_regularizer = "l2", .shared_axes = {1}});
           },
       .input = {{4, 3, 5}},
       .output = {4, 3, 5},
       .weights = {{"alpha", {1, 5}}},
       .config = {
           {"alpha_initializer", {{"class_name", "HeNormal"}, {"config", {{"seed", nullptr}}}}},
           {"alpha_regularizer", {{"class_name", "L2"}, {"config", {{"l2", 0.01}}}}},
           {"alpha_constraint", nullptr},
           {"shared_axes", {1}}}});
}

TEST_CASE("PReLU takes one shared axis, as Keras does") {
  const Json config = {{"class_name", "PReLU"}, {"config", {{"shared_axes", 1}}}};
  const LayerHandle layer = layer_from_config(config, JsonPath("layer.json"));
  CHECK(layer->config().at("shared_axes") == Json::array({1}));
}

TEST_CASE("PReLU refuses invalid arguments by name") {
  const LayerHandle layer = PReLU({.name = "p"});
  layer->build({{-1, 3, 4}});
  CHECK_THROWS_WITH(layer->output_shape({{2, 3, 5}}),
                    Contains("[PReLU p]") && Contains("(3, 4)") && Contains("(2, 3, 5)"));
  CHECK_THROWS_WITH(PReLU({.name = "p"})->build({{-1, -1, 4}}), Contains("Received: (-1, -1, 4)"));
  CHECK_THROWS_WITH(PReLU({.name = "p"})->build({{4}}), Contains("Received: (4,)"));
  CHECK_THROWS_WITH(PReLU({.shared_axes = {2}, .name = "p"})->build({{4, 3}}),
                    Contains("[PReLU p]") && Contains("axis 2"));
  CHECK_THROWS_WITH(PReLU({.shared_axes = {0}, .name = "p"}),
                    Contains("[PReLU p]") && Contains("Received: (0,)"));
  PReLU({.shared_axes = {1}})->build({{-1, -1, 4}});
}

}  // namespace prelu_test
