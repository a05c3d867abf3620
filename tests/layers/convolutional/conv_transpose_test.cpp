#include <tessera/layers/convolutional/conv.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace conv_transpose_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("transposed convolutions enlarge extents by strides and windows") {
  const auto extent = [](const ConvTransposeOptions& options) {
    return LayerHandle(Conv1DTranspose(3, 4, options))->output_shape({{2, 5, 1}})[1];
  };
  CHECK(extent({.strides = 2, .padding = "same"}) == 10);
  CHECK(extent({.strides = 2}) == 12);
  CHECK(extent({.strides = 2, .output_padding = 1}) == 13);
  CHECK(LayerHandle(Conv3DTranspose(3, {1, 2, 4}, {.strides = {1, 2, 2}}))
            ->output_shape({{2, 5, 5, 5, 1}}) == Shape{2, 5, 10, 12, 3});
}

TEST_CASE("transposed convolutions refuse an output_padding that is not below the stride") {
  CHECK_THAT(error_line([] { Conv2DTranspose(4, 3, {.strides = 2, .output_padding = 2}); }),
             Contains("output_padding is below the stride"));
}

}  // namespace conv_transpose_test
