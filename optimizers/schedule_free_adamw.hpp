#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of ScheduleFreeAdamW; those from weight_decay on as in BaseOptions.
struct ScheduleFreeAdamWOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  int64_t warmup_steps = 0;  ///< in which the rate rises from 0
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

/// Schedule-free AdamW (Defazio et al., 2024; keras.optimizers.ScheduleFreeAdamW): steps are taken
/// on a second copy z of the weights, the slot "momentum", whose running mean is x; the weights are
/// (1 - beta_1) · z + beta_1 · x. Throws ConfigError unless beta_1 lies in (0, 1), beta_2 in
/// [0, 1) and the others are not negative.
class ScheduleFreeAdamW : public OptimizerHandle {
 public:
  explicit ScheduleFreeAdamW(LearningRate learning_rate = 0.0025,
                             ScheduleFreeAdamWOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static ScheduleFreeAdamW from_config(JsonObject& config);
};

}  // namespace tessera
