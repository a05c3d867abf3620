#include "tests/support/random_layer_check.hpp"

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/nn/internal/random_stream.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace tessera::test {

using namespace detail;

CallContext training_step(int64_t number, int64_t seed) {
  return {.training = true, .random = std::make_shared<RandomStream>(seed, number)};
}

void check_moments(const at::Tensor& numbers, double mean, double stddev) {
  const double n = static_cast<double>(numbers.numel());
  CHECK(std::abs(numbers.mean().item<double>() - mean) < 4 * stddev / std::sqrt(n));
  CHECK(numbers.std().item<double>() == Approx(stddev).epsilon(0.02));
}

void check_draws(const LayerHandle& layer, const DTensor& x) {
  const auto draw = [&](const CallContext& context) { return layer(x, context).full(); };
  const at::Tensor first = draw(training_step(0));
  CHECK(first.equal(draw(training_step(0))));
  CHECK_FALSE(first.equal(draw(training_step(1))));
  CHECK_FALSE(first.equal(draw(training_step(0, 2))));
  const CallContext twice = training_step(0);
  CHECK(first.equal(draw(twice)));
  CHECK_FALSE(first.equal(draw(twice)));
  CHECK_FALSE(first.equal(x.full()));
  CHECK(difference(draw({}), x.full()) == "");
}

}  // namespace tessera::test
