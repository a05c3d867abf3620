#pragma once

#include <string>

#include <tessera/framework/nn/optimizer.hpp>

namespace tessera {

struct AdamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  double weight_decay = 0;
  /// Adds epsilon to the root of the bias-corrected v, as PyTorch and the Core-API guide do, where
  /// Keras adds it to the root of v: with small gradients that is up to 30 times more.
  bool epsilon_on_corrected_root = false;
};

/// Adam (Kingma and Ba, 2014; keras.optimizers.Adam): m and v are running means of g and g²,
/// w -= rate·sqrt(1 - beta_2^t)/(1 - beta_1^t) · m / (sqrt(v) + epsilon); with amsgrad v is the
/// largest so far. Throws ConfigError unless the betas lie in [0, 1) and epsilon >= 0.
class Adam : public OptimizerRef {
 public:
  explicit Adam(double learning_rate = 0.001, AdamOptions options = {});
};

/// The optimizer behind Adam and AdamW, as `class_name`.
OptimizerRef make_adam(const std::string& class_name, double learning_rate,
                       const AdamOptions& options);

}  // namespace tessera
