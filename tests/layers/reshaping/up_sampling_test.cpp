#include <tessera/layers/reshaping/up_sampling.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace up_sampling_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("up-samplings refuse an unknown interpolation, those of sequences all but \"nearest\"") {
  CHECK_THAT(error_line([] { UpSampling2D(2, {.interpolation = "cubic"}); }),
             Contains("\"bicubic\""));
  CHECK_THAT(error_line([] { UpSampling1D(2, {.interpolation = "bilinear"}); }),
             Contains("interpolation"));
  CHECK_THAT(error_line([] { UpSampling3D(2, {.interpolation = "bilinear"}); }),
             Contains("interpolation"));
}

TEST_CASE("only up-samplings of images write an interpolation") {
  CHECK_FALSE(UpSampling3D()->config().contains("interpolation"));
  CHECK_FALSE(UpSampling1D()->config().contains("interpolation"));
  CHECK(UpSampling2D()->config().at("interpolation") == "nearest");
}

}  // namespace up_sampling_test
