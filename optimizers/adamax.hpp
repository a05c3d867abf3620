#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adamax; those from weight_decay on as in BaseOptions.
struct AdamaxOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
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

/// Adamax (Kingma and Ba, 2014; keras.optimizers.Adamax): m is the running mean of g,
/// u = max(beta_2·u, |g|), w -= rate / (1 - beta_1^t) · m / (u + epsilon). Throws ConfigError
/// unless the betas lie in [0, 1) and epsilon >= 0.
class Adamax : public OptimizerHandle {
 public:
  explicit Adamax(LearningRate learning_rate = 0.001, AdamaxOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Adamax from_config(JsonObject& config);
};

}  // namespace tessera
