#include <tessera/layers/internal/gamma_draws.hpp>

#include <cmath>
#include <numbers>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera::detail {

namespace {

/// Returns log(u), with u = 0, which can be drawn, as 2^-24.
DTensor log_of_draw(const DTensor& u) {
  return ops::log(ops::maximum(u, constant_like(u, std::exp2(-24.0))));
}

}  // namespace

DTensor log_gamma_numbers(const ImageDraws& draws, const DTensor& alpha) {
  const DTensor d = alpha + 2.0 / 3;
  const DTensor c = ops::rsqrt(d * 9);
  const DTensor angle = draws.each_of(num_attempts, num_attempts) * (2 * std::numbers::pi);
  const DTensor z = ops::sqrt(log_of_draw(draws.each_of(0, num_attempts)) * -2) * ops::cos(angle);
  const DTensor root = z * c + 1;
  // A proposal below 0 is rejected; the clamp keeps its logarithm finite.
  const DTensor small = constant_like(root, 1e-30);
  const DTensor log_v = ops::log(ops::maximum(root, small)) * 3;
  const DTensor v = ops::exp(log_v);
  const DTensor bound = ops::square(z) * 0.5 + d * (-v + log_v + 1);
  const DTensor succeeds = ops::logical_and(
      ops::greater(root, small),
      ops::less(log_of_draw(draws.each_of(2 * num_attempts, num_attempts)), bound));
  const DTensor first = ops::argmax(ops::cast(succeeds, at::kFloat), 1);
  const DTensor log_of_first = ops::sum(log_v * ops::one_hot(first, num_attempts), {1}, true);
  return log_of_first + ops::log(d) + log_of_draw(draws.each(3 * num_attempts)) / alpha;
}

DTensor beta_numbers(const ImageDraws& draws, const DTensor& alpha) {
  return ops::sigmoid(log_gamma_numbers(draws, alpha) -
                      log_gamma_numbers(draws.from(gamma_draws), alpha));
}

}  // namespace tessera::detail
