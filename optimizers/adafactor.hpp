#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adafactor.
struct AdafactorOptions {
  double beta_2_decay = -0.8;  ///< weight of new squares in the means is t^beta_2_decay; at most 0
  double epsilon_1 = 1e-30;    ///< added to squared gradients, at least 0
  double epsilon_2 = 1e-3;    ///< lower bound of the weights' root mean square that scales the rate
  double clip_threshold = 1;  ///< maximum root mean square of an update, positive
  bool relative_step = true;  ///< no effect, as in Keras: the rate is bounded either way
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

/// Adafactor (Shazeer and Stern, 2018; keras.optimizers.Adafactor): for tensors with at least 2
/// axes, the means of g² are factored into means along the last axis ("r") and the one before it
/// ("c"). The update is clipped by its root mean square; the rate, at most 1 / sqrt(t), is
/// multiplied by the root mean square of the weights. Slots: "r", "c", "velocity".
///
/// Communication: means and squares are global: one all-reduce a step for all variables that are
/// sharded over the same mesh dimensions, and one for each mean along a sharded axis.
/// Throws ConfigError unless beta_2_decay <= 0, the epsilons >= 0 and clip_threshold > 0.
class Adafactor : public OptimizerHandle {
 public:
  explicit Adafactor(LearningRate learning_rate = 0.001, AdafactorOptions options = {});
};

}  // namespace tessera
