#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of AdamW; weight_decay and those from clipnorm on as in BaseOptions.
struct AdamWOptions {
  std::optional<double> weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
  bool epsilon_on_corrected_root = false;  ///< as AdamOptions'
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2017; keras.optimizers.AdamW). Throws
/// ConfigError without a weight_decay.
class AdamW : public OptimizerHandle {
 public:
  explicit AdamW(LearningRate learning_rate = 0.001, AdamWOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static AdamW from_config(JsonObject& config);
};

}  // namespace tessera
