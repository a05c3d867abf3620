#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Nadam.
struct NadamOptions {
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

/// Adam with Nesterov's momentum (Dozat, 2016; keras.optimizers.Nadam); its factor of step t is
/// beta_1·(1 - 0.96^t / 2). Slots: "momentum", "velocity". Throws ConfigError unless the betas lie
/// in [0, 1) and epsilon >= 0.
class Nadam : public OptimizerHandle {
 public:
  explicit Nadam(LearningRate learning_rate = 0.001, NadamOptions options = {});
};

}  // namespace tessera
