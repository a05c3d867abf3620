#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Lion; those from weight_decay on as in BaseOptions.
struct LionOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.99;
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

/// Lion (Chen et al., 2023; keras.optimizers.Lion): w -= rate·sign(beta_1·m + (1 - beta_1)·g), then
/// m, a running mean of g, moves by beta_2. Throws ConfigError unless beta_1 lies in (0, 1] and
/// beta_2 in [0, 1].
class Lion : public OptimizerHandle {
 public:
  explicit Lion(LearningRate learning_rate = 0.001, LionOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Lion from_config(JsonObject& config);
};

}  // namespace tessera
