#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of SGD.
struct SGDOptions {
  double momentum = 0;    ///< share of the former step in the next, in [0, 1]; 0: no slots
  bool nesterov = false;  ///< looks ahead along the momentum
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

/// Gradient descent (keras.optimizers.SGD): w -= rate·g; with momentum m = momentum·m - rate·g and
/// w += m, or w += momentum·m - rate·g with Nesterov's. Slots: with momentum "momentum". Throws
/// ConfigError unless momentum lies in [0, 1].
///
///     SGD(0.1, {.momentum = 0.9, .nesterov = true})
class SGD : public OptimizerHandle {
 public:
  explicit SGD(LearningRate learning_rate = 0.01, SGDOptions options = {});
};

}  // namespace tessera
