#pragma once

#include <cstdint>

#include <tessera/layers/internal/augmentation.hpp>

/// Gamma and beta samples of augmentation layers, computed from their uniform draws.
namespace tessera::detail {

/// Proposals per gamma sample; each is rejected with probability 1/20 at most.
constexpr int64_t num_attempts = 8;
/// Uniform draws per sample.
constexpr int64_t gamma_draws = 3 * num_attempts + 1;
constexpr int64_t beta_draws = 2 * gamma_draws;

/// Returns the logarithm of a Gamma(alpha, 1) sample for each image, alpha of shape (1, 1), by
/// Marsaglia and Tsang: the first accepted proposal of Gamma(alpha + 1, 1) times u^(1 / alpha).
DTensor log_gamma_numbers(const ImageDraws& draws, const DTensor& alpha);

/// Returns a Beta(alpha, alpha) sample for each image, (batch, 1).
DTensor beta_numbers(const ImageDraws& draws, const DTensor& alpha);

}  // namespace tessera::detail
