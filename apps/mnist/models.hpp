#pragma once

#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::mnist {

/// A classifier of digits and how its guide trains it.
struct Recipe {
  Sequential model;
  OptimizerRef optimizer;
};

/// The Core-API guide's MLP: ReLU layers of the given sizes and 10 logits, Xavier-uniform weights
/// from the stateless seed (22, 23), Adam with epsilon on the corrected root.
Recipe core_api(const std::vector<int64_t>& hidden, double learning_rate);

/// The Keras tutorial's Flatten-Dense(128)-Dense(10), Glorot-uniform from seeds 1337 and 1338,
/// Adam.
Recipe keras(double learning_rate);

}  // namespace tessera::mnist
