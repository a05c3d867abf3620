#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of RMSprop.
struct RMSpropOptions {
  double rho = 0.9;       ///< share of the former means in the next, in [0, 1]
  double momentum = 0;    ///< share of the former step in the next, in [0, 1]; 0: no slot for it
  double epsilon = 1e-7;  ///< added to the mean of squares under the root, at least 0
  bool centered = false;  ///< takes the variance of gradients instead of the mean of squares
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

/// RMSprop (Hinton, 2012; keras.optimizers.RMSprop): v is the running mean of g² with factor rho,
/// u = rate·g / sqrt(v + epsilon), v less the squared running mean of g if centered; w -= u, or
/// with momentum m = momentum·m + u and w -= m. Slots: "velocity", with momentum "momentum",
/// centered "average_gradient". Throws ConfigError unless rho and momentum lie in [0, 1] and
/// epsilon >= 0.
class RMSprop : public OptimizerHandle {
 public:
  explicit RMSprop(LearningRate learning_rate = 0.001, RMSpropOptions options = {});
};

}  // namespace tessera
