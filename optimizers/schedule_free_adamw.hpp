#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of ScheduleFreeAdamW.
struct ScheduleFreeAdamWOptions {
  double beta_1 = 0.9;       ///< weight of the average x in the weights, in (0, 1)
  double beta_2 = 0.999;     ///< decay of the mean of squares v, in [0, 1)
  double epsilon = 1e-8;     ///< added to the square root of the bias-corrected v, at least 0
  int64_t warmup_steps = 0;  ///< steps of linear warm-up of the rate from 0
  /// Decoupled weight decay, w -= w · rate · weight_decay before each update; none: no decay.
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;         ///< max norm of each gradient; none: off
  std::optional<double> clipvalue = std::nullopt;        ///< max |gradient element|; none: off
  std::optional<double> global_clipnorm = std::nullopt;  ///< max norm of all gradients; none: off
  bool use_ema = false;        ///< whether to keep moving averages of the weights
  double ema_momentum = 0.99;  ///< decay of the moving averages, in [0, 1]
  /// Iterations after which averages overwrite the weights; none: finalize_variable_values() does.
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;  ///< factor of the loss; none: 1
  /// Calls of apply() whose gradients are averaged into one update, at least 2; none: each updates.
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";  ///< prefix of the slots' paths (default: the class name in snake_case)
};

/// Schedule-free AdamW (Defazio et al., 2024; keras.optimizers.ScheduleFreeAdamW): steps update a
/// second copy z of the weights, the slot "momentum", whose running mean is x; the weights are
/// (1 - beta_1) · z + beta_1 · x. Slots: "momentum", "velocity". Throws ConfigError unless beta_1
/// is in (0, 1), beta_2 in [0, 1) and the other options are not negative.
class ScheduleFreeAdamW : public OptimizerHandle {
 public:
  explicit ScheduleFreeAdamW(LearningRate learning_rate = 0.0025,
                             ScheduleFreeAdamWOptions options = {});
};

}  // namespace tessera
