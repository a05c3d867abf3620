#include <tessera/layers/convolutional/conv.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace separable_conv_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("a separable convolution mixes the channels with a 1 by 1 kernel") {
  const LayerHandle layer = SeparableConv1D(5, 3, {.depth_multiplier = 2});
  layer->build({{-1, 6, 4}});
  CHECK(layer->weights()[0].shape() == Shape{3, 4, 2});
  CHECK(layer->weights()[1].shape() == Shape{1, 8, 5});
  CHECK(layer->weights()[2].shape() == Shape{5});
  CHECK(layer->output_shape({{1, 6, 4}}) == Shape{1, 4, 5});
}

TEST_CASE("separable convolutions refuse filters and a depth_multiplier below 1") {
  CHECK_THAT(error_line([] { SeparableConv2D(0, 3, {.name = "s"}); }),
             Contains("[SeparableConv2D s] filters"));
  CHECK_THAT(error_line([] { SeparableConv2D(2, 3, {.depth_multiplier = 0}); }),
             Contains("depth_multiplier"));
}

}  // namespace separable_conv_test
