#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of SGD.
struct SGDOptions {
  double momentum = 0;    ///< decay of the momentum, in [0, 1]; 0: no momentum and no slots
  bool nesterov = false;  ///< whether to use Nesterov momentum
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
  /// Whether momentum is updated only for the rows of an embedding's table that a step looked up.
  /// Without momentum these are the only rows that change.
  bool lazy_rows = false;
};

/// Stochastic gradient descent (keras.optimizers.SGD): w -= rate·g; with momentum
/// m = momentum·m - rate·g and w += m, or w += momentum·m - rate·g with Nesterov momentum. Slots:
/// with momentum "momentum". Throws ConfigError unless momentum is in [0, 1].
///
///     SGD(0.1, {.momentum = 0.9, .nesterov = true})
class SGD : public OptimizerHandle {
 public:
  explicit SGD(LearningRate learning_rate = 0.01, SGDOptions options = {});
};

}  // namespace tessera
