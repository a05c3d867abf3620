#include <tessera/layers/regularization/dropout.hpp>

#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"

namespace gaussian_dropout_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("GaussianDropout under every layout") {
  run_layer_test({.make = [] { return GaussianDropout(0.3, {.seed = 2}); },
                  .input = {{3, 5, 2}},
                  .output = {3, 5, 2},
                  .config = {{"rate", 0.3}, {"seed", 2}}});
}

TEST_CASE("GaussianDropout multiplies by its distribution, in training only") {
  const DTensor x = ones({500, 200});
  check_moments(GaussianDropout(0.2)(x, training_step(0)).full(), 1, 0.5);
  check_draws(GaussianDropout(0.5), x);
  CHECK(difference(GaussianDropout(0)(x, training_step(0)).full(), x.full()) == "");
}

TEST_CASE("GaussianDropout refuses invalid rates, by name") {
  for (const double rate : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(GaussianDropout(rate, {.name = "g"}), Contains("[GaussianDropout g] rate"));
  }
}

}  // namespace gaussian_dropout_test
