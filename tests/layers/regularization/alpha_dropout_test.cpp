#include <tessera/layers/regularization/dropout.hpp>

#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"

namespace alpha_dropout_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("AlphaDropout under every layout") {
  run_layer_test({.make = [] { return AlphaDropout(0.3); },
                  .input = {{6, 5}},
                  .output = {6, 5},
                  .config = {{"rate", 0.3}, {"seed", nullptr}, {"noise_shape", nullptr}}});
  run_layer_test({.make =
                      [] {
                        return AlphaDropout(0.3, {.noise_shape = {-1, 1}, .seed = 3});
                      },
                  .input = {{6, 5}},
                  .output = {6, 5},
                  .config = {{"rate", 0.3}, {"seed", 3}, {"noise_shape", {nullptr, 1}}}});
}

TEST_CASE("AlphaDropout keeps mean and variance, in training only") {
  const DTensor x = pack(at::randn({500, 200}), Layout::replicated(default_mesh(), 2));
  const at::Tensor y = AlphaDropout(0.3)(x, training_step(0)).full();
  check_moments(y, 0, 1);
  // Dropped elements all have one value, the others lie on a straight line over x.
  const double limit = 1.7580993408473766, scale = std::pow(0.7 * (1 + 0.3 * limit * limit), -0.5);
  const at::Tensor dropped = y.add(limit * scale * 0.7).abs().lt(1e-6);
  CHECK(dropped.to(at::kDouble).mean().item<double>() == Approx(0.3).margin(0.01));
  const at::Tensor line = x.full() * scale + limit * scale * 0.3;
  CHECK(difference(y.masked_select(dropped.logical_not()),
                   line.masked_select(dropped.logical_not()), 1e-5, 1e-5) == "");
  check_draws(AlphaDropout(0.5), x);
  CHECK(difference(AlphaDropout(0)(x, training_step(0)).full(), x.full()) == "");
}

TEST_CASE("AlphaDropout refuses invalid rates and shapes, by name") {
  for (const double rate : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH(AlphaDropout(rate, {.name = "a"}), Contains("[AlphaDropout a] rate"));
  }
  CHECK_THROWS_WITH(AlphaDropout(0.5, {.noise_shape = {-1, 2}, .name = "a"})->build({{4, 3}}),
                    Contains("[AlphaDropout a]") && Contains("(-1, 2)") && Contains("(4, 3)"));
  CHECK_THROWS_WITH(AlphaDropout(0.5, {.noise_shape = {0}}), Contains("(0,)"));
}

}  // namespace alpha_dropout_test
