#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Lamb.
struct LambOptions {
  double beta_1 = 0.9;    ///< share of the former mean of gradients in the next, in [0, 1)
  double beta_2 = 0.999;  ///< share of the former mean of squares in the next, in [0, 1)
  double epsilon = 1e-7;  ///< added to the root of the mean of squares, at least 0
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

/// Lamb (You et al., 2019; keras.optimizers.Lamb): a step of Adam whose rate is multiplied by
/// |w| / |step|, norms of the whole variable however it is cut. Slots: "momentum", "velocity".
///
/// Communication: one all-reduce a step for all variables that are cut alike. Throws ConfigError
/// unless the betas lie in [0, 1) and epsilon >= 0.
class Lamb : public OptimizerHandle {
 public:
  explicit Lamb(LearningRate learning_rate = 0.001, LambOptions options = {});
};

}  // namespace tessera
