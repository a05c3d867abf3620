#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of RMSprop; those from weight_decay on as in BaseOptions.
struct RMSpropOptions {
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;
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

/// RMSprop (Hinton, 2012; keras.optimizers.RMSprop): v is the running mean of g² with factor rho,
/// u = rate·g / sqrt(v + epsilon), v less the squared running mean of g if centered; w -= u, or
/// with momentum m = momentum·m + u and w -= m. Throws ConfigError unless rho and momentum lie in
/// [0, 1] and epsilon >= 0.
class RMSprop : public OptimizerHandle {
 public:
  explicit RMSprop(LearningRate learning_rate = 0.001, RMSpropOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static RMSprop from_config(JsonObject& config);
};

}  // namespace tessera
