#include <tessera/layers/regularization/dropout.hpp>

#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"

namespace spatial_dropout_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("spatial dropouts under every layout") {
  run_layer_test({.make = [] { return SpatialDropout1D(0.4); },
                  .input = {{4, 3, 5}},
                  .output = {4, 3, 5},
                  .config = {{"rate", 0.4}, {"seed", nullptr}}});
  run_layer_test({.make = [] { return SpatialDropout2D(0.4, {.seed = 2}); },
                  .input = {{3, 2, 3, 5}},
                  .output = {3, 2, 3, 5},
                  .config = {{"rate", 0.4}, {"seed", 2}, {"data_format", "channels_last"}}});
  const auto first = [] { return SpatialDropout3D(0.4, {.data_format = "channels_first"}); };
  run_layer_test({.make = first,
                  .input = {{3, 5, 2, 1, 3}},
                  .output = {3, 5, 2, 1, 3},
                  .config = {{"rate", 0.4}, {"seed", nullptr}, {"data_format", "channels_first"}}});
}

TEST_CASE("spatial dropout drops entire channels of rows") {
  const auto check = [](const LayerHandle& layer, const Shape& shape, int64_t channels) {
    CAPTURE(layer->class_name());
    const at::Tensor drawn = layer(ones(shape), training_step(0)).full();
    const at::Tensor y = drawn.movedim(channels, 1).flatten(2);
    const at::Tensor kept = y.select(2, 0);
    CHECK(difference(y, kept.unsqueeze(-1).expand_as(y).contiguous()) == "");
    CHECK(kept.eq(0).logical_or(kept.eq(4.0 / 3)).all().item<bool>());
    CHECK(kept.eq(0).to(at::kDouble).mean().item<double>() == Approx(0.25).margin(0.05));
    check_draws(layer, ones(shape));
  };
  check(SpatialDropout1D(0.25), {40, 3, 50}, 2);
  check(SpatialDropout2D(0.25), {40, 2, 3, 50}, 3);
  check(SpatialDropout2D(0.25, {.data_format = "channels_first"}), {40, 50, 2, 3}, 1);
  check(SpatialDropout3D(0.25), {40, 2, 1, 3, 50}, 4);
  check(SpatialDropout3D(0.25, {.data_format = "channels_first"}), {40, 50, 1, 2, 3}, 1);
}

TEST_CASE("spatial dropout refuses invalid arguments by name") {
  for (const double rate : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(SpatialDropout2D(rate, {.name = "s"}), Contains("[SpatialDropout2D s] rate"));
  }
  CHECK_THROWS_WITH(SpatialDropout2D(0.5, {.data_format = "first", .name = "s"}),
                    Contains("[SpatialDropout2D s] data_format") && Contains("\"first\""));
  CHECK_THROWS_AS(SpatialDropout1D(0.5, {.data_format = "channels_first"}), ConfigError);
  CHECK_THROWS_WITH(SpatialDropout1D(0.5, {.name = "s"})->build({{2, 3}}),
                    Contains("[SpatialDropout1D s] the input has 3 axes") && Contains("(2, 3)"));
}

}  // namespace spatial_dropout_test
