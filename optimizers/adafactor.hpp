#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adafactor.
struct AdafactorOptions {
  double beta_2_decay = -0.8;  ///< exponent of t in the share of new squares in means, at most 0
  double epsilon_1 = 1e-30;    ///< added to squared gradients, at least 0
  double epsilon_2 = 1e-3;     ///< least root mean square of the weights that scales the rate
  double clip_threshold = 1;   ///< largest root mean square of an update, positive
  bool relative_step = true;   ///< without effect, as in Keras: the rate is bounded either way
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

/// Adafactor (Shazeer and Stern, 2018; keras.optimizers.Adafactor): for tensors of 2 axes and more
/// the means of g² along the last axis ("r") and along the one before it ("c") stand for those of
/// the elements; the update is clipped by its root mean square, and the rate, at most 1 / sqrt(t),
/// is relative to that of the weights. Slots: "r", "c", "velocity".
///
/// Communication: means and squares are those of the whole variable however it is cut: one
/// all-reduce a step for all variables that are cut alike, and one for each mean along a cut axis.
/// Throws ConfigError unless beta_2_decay <= 0, the epsilons >= 0 and clip_threshold > 0.
class Adafactor : public OptimizerHandle {
 public:
  explicit Adafactor(LearningRate learning_rate = 0.001, AdafactorOptions options = {});
};

}  // namespace tessera
