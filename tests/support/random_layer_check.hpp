#pragma once

#include <tessera/framework/nn/layer.hpp>

/// Helpers for tests of layers that draw random numbers.
namespace tessera::test {

using namespace detail;

/// Returns the context of a training step in a model with that seed.
CallContext training_step(int64_t number, int64_t seed = 1);

/// Checks mean and standard deviation, within the statistical error.
void check_moments(const at::Tensor& numbers, double mean, double stddev);

/// Checks that in training the layer draws differently in each step and call, deterministically,
/// and that otherwise it returns x unchanged.
void check_draws(const LayerHandle& layer, const DTensor& x);

}  // namespace tessera::test
