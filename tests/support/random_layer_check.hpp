#pragma once

#include <tessera/framework/nn/layer.hpp>

/// What the tests of layers that draw random numbers share.
namespace tessera::test {

using namespace detail;

/// A step of training in a model of that seed.
CallContext training_step(int64_t number, int64_t seed = 1);

/// Mean and standard deviation are those, as far as so many numbers can tell.
void check_moments(const at::Tensor& numbers, double mean, double stddev);

/// In training the layer draws anew each step and each call, and the same for the same; else it
/// leaves x as it is.
void check_draws(const LayerHandle& layer, const DTensor& x);

}  // namespace tessera::test
