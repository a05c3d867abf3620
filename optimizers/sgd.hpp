#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of SGD; those from weight_decay on as in BaseOptions.
struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
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

/// Gradient descent (keras.optimizers.SGD): w -= rate·g; with momentum m = momentum·m - rate·g and
/// w += m, or w += momentum·m - rate·g with Nesterov's. Throws ConfigError unless momentum lies in
/// [0, 1].
class SGD : public OptimizerHandle {
 public:
  explicit SGD(LearningRate learning_rate = 0.01, SGDOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static SGD from_config(JsonObject& config);
};

}  // namespace tessera
