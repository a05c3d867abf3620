#include <tessera/layers/reshaping/padding_cropping.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace padding_cropping_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("counts are one for all sides, one for each axis, or pairs") {
  const Shape image = {1, 5, 6, 1};
  CHECK(ZeroPadding2D(2)->output_shape({image}) == Shape{1, 9, 10, 1});
  CHECK(ZeroPadding2D({1, 2})->output_shape({image}) == Shape{1, 7, 10, 1});
  CHECK(Cropping2D({{0, 1}, {2, 3}})->output_shape({image}) == Shape{1, 4, 1, 1});
  CHECK(Cropping1D({1, 2})->output_shape({{1, 5, 1}}) == Shape{1, 2, 1});
  const Shape volume = {1, 5, 6, 7, 1};
  CHECK(ZeroPadding3D()->output_shape({volume}) == Shape{1, 7, 8, 9, 1});
  CHECK(ZeroPadding3D({1, 2, 3})->output_shape({volume}) == Shape{1, 7, 10, 13, 1});
  CHECK(Cropping3D({{0, 1}, {2, 3}, {1, 0}})->output_shape({volume}) == Shape{1, 4, 1, 6, 1});
}

TEST_CASE("padding and cropping layers refuse invalid counts") {
  CHECK_THAT(error_line([] { ZeroPadding2D(-1); }), Contains("padding"));
  CHECK_THAT(error_line([] { Cropping2D({{1, 1}, {0, 0}, {2, 1}}); }), Contains("cropping"));
  CHECK_THAT(error_line([] { Cropping3D({1, 2}); }), Contains("cropping"));
  const LayerHandle layer = Cropping1D(2);
  const DTensor steps = pack(at::zeros({1, 4, 1}), Layout::replicated(default_mesh(), 3));
  CHECK_THAT(error_line([&] { layer(steps); }), Contains("cropping must leave at least one"));
}

}  // namespace padding_cropping_test
