#pragma once

#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::mnist {

/// How a model is written; all three are the same model.
enum class Style : uint8_t { sequential, functional, subclass };
/// "sequential", "functional" or "subclass". Throws ConfigError.
Style parse_style(const std::string& text);

/// A classifier of digits and how its guide trains it.
struct Recipe {
  ModelHandle model;
  OptimizerHandle optimizer;
};

/// The Core-API guide's MLP: ReLU layers of the given sizes and 10 logits, Xavier-uniform weights
/// from the stateless seed (22, 23), Adam with epsilon on the corrected root.
Recipe core_api(Style style, const std::vector<int64_t>& hidden, double learning_rate);

/// The Keras tutorial's Flatten-Dense(128)-Dense(10), Glorot-uniform from seeds 1337 and 1338,
/// Adam.
Recipe keras(Style style, double learning_rate);

struct CnnOptions {
  double dropout = 0.5;     ///< before the logits; 0: none
  bool batch_norm = false;  ///< after each convolution
};

/// On images (28, 28): 32, then 64 convolutions of 3 by 3 with ReLU, each with a max pooling of 2,
/// and 10 logits, Glorot-uniform from seeds 1, 2 and 3, Adam.
Recipe cnn(Style style, const CnnOptions& options, double learning_rate);

}  // namespace tessera::mnist
