#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of RMSprop.
struct RMSpropOptions {
  double rho = 0.9;       ///< decay of the running means, in [0, 1]
  double momentum = 0;    ///< decay of the momentum, in [0, 1]; 0: no momentum and no slot for it
  double epsilon = 1e-7;  ///< added to v under the square root, at least 0
  bool centered = false;  ///< whether to divide by the variance of gradients, not their mean square
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
  /// Whether a step changes only the rows of an embedding's table, its slots included, that it
  /// looked up; the other rows keep their momentum and are not decayed.
  bool lazy_rows = false;
};

/// RMSprop (Hinton, 2012; keras.optimizers.RMSprop): v is the running mean of g² with decay rho, if
/// centered minus the squared running mean of g; u = rate·g / sqrt(v + epsilon); w -= u, or with
/// momentum m = momentum·m + u and w -= m. Slots: "velocity", with momentum "momentum", if centered
/// "average_gradient". Throws ConfigError unless rho and momentum are in [0, 1] and epsilon >= 0.
class RMSprop : public OptimizerHandle {
 public:
  explicit RMSprop(LearningRate learning_rate = 0.001, RMSpropOptions options = {});
};

}  // namespace tessera
