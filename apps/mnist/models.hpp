#pragma once

#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::mnist {

/// The API that a model is written in; the model is the same in all three.
enum class Style : uint8_t { sequential, functional, subclass };
/// Parses "sequential", "functional" or "subclass". Throws ConfigError.
Style parse_style(const std::string& text);

/// A digit classifier and the optimizer that its guide trains it with.
struct Recipe {
  ModelHandle model;
  OptimizerHandle optimizer;
};

/// Makes the Core-API guide's MLP: ReLU layers of the given sizes and 10 logits, Xavier-uniform
/// weights from the stateless seed (22, 23), Adam with epsilon on the corrected root.
Recipe core_api(Style style, const std::vector<int64_t>& hidden, double learning_rate);

/// Makes the Keras tutorial's Flatten-Dense(128)-Dense(10), Glorot-uniform from seeds 1337 and
/// 1338, Adam.
Recipe keras(Style style, double learning_rate);

struct CnnOptions {
  double dropout = 0.5;     ///< dropout rate before the logits
  bool batch_norm = false;  ///< whether to normalize after each convolution
};

/// Makes a CNN on images (28, 28): 3x3 convolutions with 32 and 64 channels and ReLU, each followed
/// by 2x2 max pooling, and 10 logits; Glorot-uniform from seeds 1, 2 and 3, Adam.
Recipe cnn(Style style, const CnnOptions& options, double learning_rate);

}  // namespace tessera::mnist
