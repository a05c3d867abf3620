#include <tessera/layers/convolutional/conv.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace depthwise_conv_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("a depthwise convolution has separate kernels for each channel") {
  const LayerHandle layer = DepthwiseConv2D({3, 2}, {.depth_multiplier = 2});
  layer->build({{-1, 6, 5, 4}});
  CHECK(layer->weights()[0].shape() == Shape{3, 2, 4, 2});
  CHECK(layer->weights()[1].shape() == Shape{8});
  CHECK(layer->output_shape({{1, 6, 5, 4}}) == Shape{1, 4, 4, 8});
}

TEST_CASE("depthwise convolutions refuse a depth_multiplier below 1") {
  CHECK_THAT(error_line([] { DepthwiseConv2D(3, {.depth_multiplier = 0}); }),
             Contains("depth_multiplier"));
}

}  // namespace depthwise_conv_test
