#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adamax.
struct AdamaxOptions {
  double beta_1 = 0.9;    ///< share of the former mean of gradients in the next, in [0, 1)
  double beta_2 = 0.999;  ///< share of the former largest gradient in the next, in [0, 1)
  double epsilon = 1e-7;  ///< added to the largest gradient, at least 0
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

/// Adamax (Kingma and Ba, 2014; keras.optimizers.Adamax): m is the running mean of g,
/// u = max(beta_2·u, |g|), w -= rate / (1 - beta_1^t) · m / (u + epsilon). Slots: "momentum",
/// "norm". Throws ConfigError unless the betas lie in [0, 1) and epsilon >= 0.
class Adamax : public OptimizerHandle {
 public:
  explicit Adamax(LearningRate learning_rate = 0.001, AdamaxOptions options = {});
};

}  // namespace tessera
