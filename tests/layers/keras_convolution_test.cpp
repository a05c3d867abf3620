// Conv1D, Conv2D, Conv3D, Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, DepthwiseConv1D,
// DepthwiseConv2D, SeparableConv1D, SeparableConv2D, and MaxPooling, AveragePooling,
// GlobalMaxPooling, GlobalAveragePooling, AdaptiveMaxPooling, AdaptiveAveragePooling, UpSampling,
// ZeroPadding and Cropping of one to three axes.
#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

namespace keras_convolution_test {

using namespace tessera::test;

TEST_CASE("convolutions match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "conv"));
}

TEST_CASE("depthwise and separable convolutions match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "depthwise"));
}

TEST_CASE("transposed convolutions match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "transpose"));
}

TEST_CASE("pooling layers match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "pooling"));
}

TEST_CASE("up-sampling, padding and cropping match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "size"));
}

TEST_CASE("layers for volumes match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "volume"));
}

TEST_CASE("adaptive poolings match Keras on every mesh") {
  check_layers(golden_part("keras_convolution.json", "adaptive"));
}

}  // namespace keras_convolution_test
