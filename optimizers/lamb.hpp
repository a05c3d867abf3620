#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Lamb; those from weight_decay on as in BaseOptions.
struct LambOptions {
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

/// Lamb (You et al., 2019; keras.optimizers.Lamb): a step of Adam whose rate is multiplied by
/// |w| / |step|, norms of the whole variable however it is cut: one all-reduce a step for all
/// variables that are cut alike. Throws ConfigError unless the betas lie in [0, 1) and
/// epsilon >= 0.
class Lamb : public OptimizerHandle {
 public:
  explicit Lamb(LearningRate learning_rate = 0.001, LambOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Lamb from_config(JsonObject& config);
};

}  // namespace tessera
