#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Lion.
struct LionOptions {
  double beta_1 = 0.9;   ///< share of the momentum in a step's direction, in (0, 1]
  double beta_2 = 0.99;  ///< share of the former momentum in the next, in [0, 1]
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

/// Lion (Chen et al., 2023; keras.optimizers.Lion): w -= rate·sign(beta_1·m + (1 - beta_1)·g), then
/// m, a running mean of g, moves by beta_2. Slots: "momentum". Throws ConfigError unless beta_1
/// lies in (0, 1] and beta_2 in [0, 1].
class Lion : public OptimizerHandle {
 public:
  explicit Lion(LearningRate learning_rate = 0.001, LionOptions options = {});
};

}  // namespace tessera
