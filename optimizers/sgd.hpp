#pragma once

#include <tessera/framework/nn/optimizer.hpp>

namespace tessera {

struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Gradient descent (keras.optimizers.SGD): w -= rate·g; with momentum m = momentum·m - rate·g and
/// w += m, or w += momentum·m - rate·g with Nesterov's. Throws ConfigError unless momentum lies in
/// [0, 1].
class SGD : public OptimizerRef {
 public:
  explicit SGD(double learning_rate = 0.01, SGDOptions options = {});
};

}  // namespace tessera
