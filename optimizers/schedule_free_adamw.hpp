#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of ScheduleFreeAdamW.
struct ScheduleFreeAdamWOptions {
  double beta_1 = 0.9;       ///< share of the mean x in the weights, in (0, 1)
  double beta_2 = 0.999;     ///< share of the former mean of squares in the next, in [0, 1)
  double epsilon = 1e-8;     ///< added to the root of the corrected mean of squares, at least 0
  int64_t warmup_steps = 0;  ///< steps in which the rate rises from 0
  /// Before each update w -= w · rate · weight_decay; none: weights do not decay.
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;         ///< max norm of each gradient; none: any
  std::optional<double> clipvalue = std::nullopt;        ///< max |gradient element|; none: any
  std::optional<double> global_clipnorm = std::nullopt;  ///< max norm of all gradients; none: any
  bool use_ema = false;                                  ///< keeps running means of the weights
  double ema_momentum = 0.99;  ///< share of the former mean in the next one, in [0, 1]
  /// Iterations after which weights become their means; none: finalize_variable_values() does that.
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;  ///< multiplies the loss; none: 1
  /// Calls of apply() whose gradients one update averages, at least 2; none: each call updates.
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";  ///< first part of the slots' paths; empty: the class's in snake_case
};

/// Schedule-free AdamW (Defazio et al., 2024; keras.optimizers.ScheduleFreeAdamW): steps are taken
/// on a second copy z of the weights, the slot "momentum", whose running mean is x; the weights are
/// (1 - beta_1) · z + beta_1 · x. Slots: "momentum", "velocity". Throws ConfigError unless beta_1
/// lies in (0, 1), beta_2 in [0, 1) and the others are not negative.
class ScheduleFreeAdamW : public OptimizerHandle {
 public:
  explicit ScheduleFreeAdamW(LearningRate learning_rate = 0.0025,
                             ScheduleFreeAdamWOptions options = {});
};

}  // namespace tessera
