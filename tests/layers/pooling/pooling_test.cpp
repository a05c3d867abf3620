#include <tessera/layers/pooling/pooling.hpp>

#include <ATen/ATen.h>

#include <type_traits>

#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/pooling/global_pooling.hpp>

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
  CHECK(LayerHandle(MaxPooling3D({1, 2, 3}))->output_shape({{2, 4, 5, 6, 1}}) ==
        Shape{2, 4, 2, 2, 1});
  CHECK(AveragePooling3D(2)->config().at("strides") == Json({2, 2, 2}));
}

TEST_CASE("Keras' other names of poolings are the same classes") {
  STATIC_REQUIRE(std::is_same_v<MaxPool3D, MaxPooling3D>);
  STATIC_REQUIRE(std::is_same_v<AvgPool2D, AveragePooling2D>);
  STATIC_REQUIRE(std::is_same_v<GlobalMaxPool1D, GlobalMaxPooling1D>);
  STATIC_REQUIRE(std::is_same_v<GlobalAvgPool3D, GlobalAveragePooling3D>);
}

TEST_CASE("poolings refuse windows that are invalid or do not fit") {
  CHECK_THAT(error_line([] { MaxPooling2D(0); }), Contains("pool_size"));
  const LayerHandle layer = MaxPooling2D(4);
  const DTensor low = pack(at::zeros({1, 3, 8, 1}), Layout::replicated(default_mesh(), 4));
  CHECK_THAT(error_line([&] { layer(low); }), Contains("a window of 4"));
}

}  // namespace pooling_test
