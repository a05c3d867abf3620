#include <tessera/layers/regularization/gaussian_noise.hpp>

#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"

namespace gaussian_noise_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("GaussianNoise under every layout") {
  run_layer_test({.make = [] { return GaussianNoise(0.4); },
                  .input = {{6, 5}},
                  .output = {6, 5},
                  .config = {{"stddev", 0.4}, {"seed", nullptr}}});
}

TEST_CASE("GaussianNoise adds its distribution, in training only") {
  const DTensor x = pack(at::randn({500, 200}), Layout::replicated(default_mesh(), 2));
  check_moments(GaussianNoise(0.25)(x, training_step(0)).full() - x.full(), 0, 0.25);
  check_draws(GaussianNoise(0.5), x);
  CHECK(difference(GaussianNoise(0)(x, training_step(0)).full(), x.full()) == "");
}

TEST_CASE("GaussianNoise with a seed draws other numbers") {
  const DTensor x = ones({16, 2, 8});
  const LayerHandle plain = GaussianNoise(0.5, {.name = "noise"});
  const LayerHandle seeded = GaussianNoise(0.5, {.seed = 3, .name = "noise"});
  CHECK_FALSE(seeded(x, training_step(0)).full().equal(plain(x, training_step(0)).full()));
}

TEST_CASE("GaussianNoise refuses invalid deviations, by name") {
  for (const double stddev : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(GaussianNoise(stddev, {.name = "g"}), Contains("[GaussianNoise g] stddev"));
  }
}

}  // namespace gaussian_noise_test
