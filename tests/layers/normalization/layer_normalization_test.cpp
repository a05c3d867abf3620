#include <tessera/layers/normalization/normalization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace layer_normalization_test {

using namespace tessera;
using Catch::Matchers::Contains;

TEST_CASE("LayerNormalization under every layout") {
  test::run_golden_layer_test({.make = [] { return LayerNormalization(); },
                               .input = {{3, 5}},
                               .output = {3, 5},
                               .weights = {{"gamma", {5}}, {"beta", {5}}}});
  test::run_golden_layer_test({.make =
                                   [] {
                                     return LayerNormalization({.axis = {2, 1}, .center = false});
                                   },
                               .input = {{2, 3, 4}},
                               .output = {2, 3, 4},
                               .weights = {{"gamma", {3, 4}}}});
}

TEST_CASE("LayerNormalization refuses invalid arguments by name") {
  CHECK_THROWS_WITH(LayerNormalization({.axis = {}, .name = "l"}),
                    Contains("[LayerNormalization l]"));
  CHECK_THROWS_WITH(LayerNormalization({.axis = {1, -1}, .name = "l"})->build({{3, 4}}),
                    Contains("[LayerNormalization l]") && Contains("once"));
  CHECK_THROWS_WITH(LayerNormalization({.name = "l"})->build({{3, -1}}), Contains("known extent"));
  const LayerHandle built = LayerNormalization({.name = "l"});
  built->build({{3, 4}});
  CHECK_THROWS_WITH(built->output_shape({{3, 5}}), Contains("(4,), as when built"));
}

}  // namespace layer_normalization_test
