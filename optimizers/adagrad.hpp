#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adagrad; those from weight_decay on as in BaseOptions.
struct AdagradOptions {
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};

/// Adagrad (Duchi et al., 2011; keras.optimizers.Adagrad): a is the sum of g² from an initial value
/// on, w -= rate·g / sqrt(a + epsilon). Throws ConfigError for a negative option.
class Adagrad : public OptimizerHandle {
 public:
  explicit Adagrad(LearningRate learning_rate = 0.001, AdagradOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Adagrad from_config(JsonObject& config);
};

}  // namespace tessera
