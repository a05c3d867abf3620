// Conv1D, Conv2D, Conv3D, Conv1DTranspose, Conv2DTranspose, DepthwiseConv1D, DepthwiseConv2D,
// SeparableConv1D, SeparableConv2D, MaxPooling, AveragePooling, GlobalMaxPooling and
// GlobalAveragePooling, UpSampling, ZeroPadding and Cropping of one and two axes.
#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

namespace keras_convolution_test {

using namespace tessera::test;

TEST_CASE("convolutions are Keras' on every mesh") {
  check_layers(golden_part("keras_convolution.json", "conv"));
}

TEST_CASE("depthwise and separable convolutions are Keras' on every mesh") {
  check_layers(golden_part("keras_convolution.json", "depthwise"));
}

TEST_CASE("transposed convolutions are Keras' on every mesh") {
  check_layers(golden_part("keras_convolution.json", "transpose"));
}

TEST_CASE("poolings are Keras' on every mesh") {
  check_layers(golden_part("keras_convolution.json", "pooling"));
}

TEST_CASE("up-sampling, padding and cropping are Keras' on every mesh") {
  check_layers(golden_part("keras_convolution.json", "size"));
}

}  // namespace keras_convolution_test
