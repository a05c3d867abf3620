#include <tessera/layers/pooling/pooling.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace pooling_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("a pooling's strides default to its window") {
  CHECK(LayerHandle(MaxPooling1D(3))->output_shape({{2, 9, 1}}) == Shape{2, 3, 1});
  CHECK(LayerHandle(AveragePooling1D(3, {.strides = 2}))->output_shape({{2, 9, 1}}) ==
        Shape{2, 4, 1});
}

TEST_CASE("poolings refuse windows that are invalid or do not fit") {
  CHECK_THAT(error_line([] { MaxPooling2D(0); }), Contains("pool_size"));
  const LayerHandle layer = MaxPooling2D(4);
  const DTensor low = pack(at::zeros({1, 3, 8, 1}), Layout::replicated(default_mesh(), 4));
  CHECK_THAT(error_line([&] { layer(low); }), Contains("a window of 4"));
}

}  // namespace pooling_test
