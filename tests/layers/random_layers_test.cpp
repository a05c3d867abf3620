#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace random_layers_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;

namespace {

CallContext step(int64_t number, int64_t seed = 1) {
  return {.training = true, .random = std::make_shared<RandomStream>(seed, number)};
}

DTensor value(const at::Tensor& whole) {
  return pack(whole, Layout::replicated(default_mesh(), whole.dim()));
}

void check_moments(const at::Tensor& y, double mean, double stddev) {
  const double n = static_cast<double>(y.numel());
  CHECK(std::abs(y.mean().item<double>() - mean) < 4 * stddev / std::sqrt(n));
  CHECK(y.std().item<double>() == Approx(stddev).epsilon(0.02));
}

}  // namespace

TEST_CASE("random layers under every layout") {
  test::run_layer_test({.make = [] { return GaussianNoise(0.4); },
                        .input = {{6, 5}},
                        .output = {6, 5},
                        .config = {{"stddev", 0.4}, {"seed", nullptr}}});
  test::run_layer_test({.make = [] { return GaussianDropout(0.3, {.seed = 2}); },
                        .input = {{3, 5, 2}},
                        .output = {3, 5, 2},
                        .config = {{"rate", 0.3}, {"seed", 2}}});
  test::run_layer_test(
      {.make = [] { return AlphaDropout(0.3); },
       .input = {{6, 5}},
       .output = {6, 5},
       .config = {{"rate", 0.3}, {"seed", nullptr}, {"noise_shape", nullptr}}});
  test::run_layer_test(
      {.make = [] { return AlphaDropout(0.3, {.noise_shape = {-1, 1}, .seed = 3}); },
       .input = {{6, 5}},
       .output = {6, 5},
       .config = {{"rate", 0.3}, {"seed", 3}, {"noise_shape", {nullptr, 1}}}});
}

TEST_CASE("spatial dropouts under every layout") {
  test::run_layer_test({.make = [] { return SpatialDropout1D(0.4); },
                        .input = {{4, 3, 5}},
                        .output = {4, 3, 5},
                        .config = {{"rate", 0.4}, {"seed", nullptr}}});
  test::run_layer_test({.make = [] { return SpatialDropout2D(0.4, {.seed = 2}); },
                        .input = {{3, 2, 3, 5}},
                        .output = {3, 2, 3, 5},
                        .config = {{"rate", 0.4}, {"seed", 2}, {"data_format", "channels_last"}}});
  const auto first = [] { return SpatialDropout3D(0.4, {.data_format = "channels_first"}); };
  test::run_layer_test(
      {.make = first,
       .input = {{3, 5, 2, 1, 3}},
       .output = {3, 5, 2, 1, 3},
       .config = {{"rate", 0.4}, {"seed", nullptr}, {"data_format", "channels_first"}}});
}

TEST_CASE("random layers draw the numbers they say, in training only") {
  const DTensor x = value(at::randn({500, 200}));
  const at::Tensor noise = GaussianNoise(0.25)(x, step(0)).full() - x.full();
  check_moments(noise, 0, 0.25);
  const DTensor one = ones({500, 200});
  check_moments(GaussianDropout(0.2)(one, step(0)).full(), 1, 0.5);
  const at::Tensor alpha = AlphaDropout(0.3)(x, step(0)).full();
  check_moments(alpha, 0, 1);
  // Dropped ones are all of one value, the others on a line through x.
  const double limit = 1.7580993408473766, scale = std::pow(0.7 * (1 + 0.3 * limit * limit), -0.5);
  const at::Tensor dropped = alpha.add(limit * scale * 0.7).abs().lt(1e-6);
  CHECK(dropped.to(at::kDouble).mean().item<double>() == Approx(0.3).margin(0.01));
  const at::Tensor line = x.full() * scale + limit * scale * 0.3;
  CHECK(difference(alpha.masked_select(dropped.logical_not()),
                   line.masked_select(dropped.logical_not()), 1e-5, 1e-5) == "");
  for (const LayerHandle& layer :
       std::vector<LayerHandle>{GaussianNoise(0.5), GaussianDropout(0.5), AlphaDropout(0.5)}) {
    CHECK(difference(layer(x).full(), x.full()) == "");
    CHECK_FALSE(layer(x, step(0)).full().equal(x.full()));
  }
  for (const LayerHandle& layer :
       std::vector<LayerHandle>{GaussianNoise(0), GaussianDropout(0), AlphaDropout(0)}) {
    CHECK(difference(layer(x, step(0)).full(), x.full()) == "");
  }
}

TEST_CASE("spatial dropout drops whole channels of samples") {
  const auto check = [](const LayerHandle& layer, const Shape& shape, int64_t channels) {
    CAPTURE(layer->class_name());
    const at::Tensor y = layer(ones(shape), step(0)).full().movedim(channels, 1).flatten(2);
    const at::Tensor kept = y.select(2, 0);
    CHECK(difference(y, kept.unsqueeze(-1).expand_as(y).contiguous()) == "");
    CHECK(kept.eq(0).logical_or(kept.eq(4.0 / 3)).all().item<bool>());
    CHECK(kept.eq(0).to(at::kDouble).mean().item<double>() == Approx(0.25).margin(0.05));
    CHECK(difference(layer(ones(shape)).full(), at::ones(shape)) == "");
  };
  check(SpatialDropout1D(0.25), {40, 3, 50}, 2);
  check(SpatialDropout2D(0.25), {40, 2, 3, 50}, 3);
  check(SpatialDropout2D(0.25, {.data_format = "channels_first"}), {40, 50, 2, 3}, 1);
  check(SpatialDropout3D(0.25), {40, 2, 1, 3, 50}, 4);
  check(SpatialDropout3D(0.25, {.data_format = "channels_first"}), {40, 50, 1, 2, 3}, 1);
}

TEST_CASE("random layers draw anew each step and each call, and the same for the same") {
  const std::vector<LayerHandle> layers = {GaussianNoise(0.5), GaussianDropout(0.5),
                                           AlphaDropout(0.5), SpatialDropout1D(0.5)};
  const DTensor x = ones({16, 2, 8});
  for (const LayerHandle& layer : layers) {
    CAPTURE(layer->class_name());
    const auto draw = [&](const CallContext& context) { return layer(x, context).full(); };
    const at::Tensor first = draw(step(0));
    CHECK(first.equal(draw(step(0))));
    CHECK_FALSE(first.equal(draw(step(1))));
    CHECK_FALSE(first.equal(draw(step(0, 2))));
    const CallContext twice = step(0);
    CHECK(first.equal(draw(twice)));
    CHECK_FALSE(first.equal(draw(twice)));
  }
  const LayerHandle seeded = GaussianNoise(0.5, {.seed = 3, .name = "gaussian_noise"});
  CHECK_FALSE(seeded(x, step(0)).full().equal(layers[0](x, step(0)).full()));
}

TEST_CASE("random layers refuse other rates and shapes, by name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {-0.1, 1.0, nan}) {
    CHECK_THROWS_WITH(GaussianDropout(rate, {.name = "g"}), Contains("[GaussianDropout g] rate"));
    CHECK_THROWS_WITH(AlphaDropout(rate, {.name = "a"}), Contains("[AlphaDropout a] rate"));
    CHECK_THROWS_WITH(SpatialDropout2D(rate, {.name = "s"}), Contains("[SpatialDropout2D s] rate"));
  }
  for (const double stddev : {-0.1, 1.1, nan}) {
    CHECK_THROWS_WITH(GaussianNoise(stddev, {.name = "g"}), Contains("[GaussianNoise g] stddev"));
  }
  CHECK_THROWS_WITH(SpatialDropout2D(0.5, {.data_format = "first", .name = "s"}),
                    Contains("[SpatialDropout2D s] data_format") && Contains("\"first\""));
  CHECK_THROWS_AS(SpatialDropout1D(0.5, {.data_format = "channels_first"}), ConfigError);
  CHECK_THROWS_WITH(SpatialDropout1D(0.5, {.name = "s"})->build({{2, 3}}),
                    Contains("[SpatialDropout1D s] the input has 3 axes") && Contains("(2, 3)"));
  CHECK_THROWS_WITH(AlphaDropout(0.5, {.noise_shape = {-1, 2}, .name = "a"})->build({{4, 3}}),
                    Contains("[AlphaDropout a]") && Contains("(-1, 2)") && Contains("(4, 3)"));
  CHECK_THROWS_WITH(AlphaDropout(0.5, {.noise_shape = {0}}), Contains("(0,)"));
}

}  // namespace random_layers_test
