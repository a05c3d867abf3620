#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adagrad.
struct AdagradOptions {
  double initial_accumulator_value = 0.1;  ///< what the sum of squares begins at, at least 0
  double epsilon = 1e-7;                   ///< added to the sum under the root, at least 0
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

/// Adagrad (Duchi et al., 2011; keras.optimizers.Adagrad): a is the sum of g² from an initial value
/// on, w -= rate·g / sqrt(a + epsilon). Slots: "accumulator". Throws ConfigError for a negative
/// option.
class Adagrad : public OptimizerHandle {
 public:
  explicit Adagrad(LearningRate learning_rate = 0.001, AdagradOptions options = {});
};

}  // namespace tessera
