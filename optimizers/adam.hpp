#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adam; those from weight_decay on as in BaseOptions.
struct AdamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
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
  /// Adds epsilon to the root of the bias-corrected v, as PyTorch and the Core-API guide do, where
  /// Keras adds it to the root of v: with small gradients that is up to 30 times more.
  bool epsilon_on_corrected_root = false;
};

/// Adam (Kingma and Ba, 2014; keras.optimizers.Adam): m and v are running means of g and g²,
/// w -= rate·sqrt(1 - beta_2^t)/(1 - beta_1^t) · m / (sqrt(v) + epsilon); with amsgrad v is the
/// largest so far. Throws ConfigError unless the betas lie in [0, 1) and epsilon >= 0.
class Adam : public OptimizerHandle {
 public:
  explicit Adam(LearningRate learning_rate = 0.001, AdamOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Adam from_config(JsonObject& config);
};

/// The optimizer behind Adam and AdamW, as `class_name`.
OptimizerHandle make_adam(const std::string& class_name, const LearningRate& learning_rate,
                       const AdamOptions& options);
/// Reads what Adam and AdamW have in common.
void take_adam_options(JsonObject& config, AdamOptions& options);

}  // namespace tessera
