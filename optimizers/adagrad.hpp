#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adagrad.
struct AdagradOptions {
  double initial_accumulator_value = 0.1;  ///< initial value of the sum of squares, at least 0
  double epsilon = 1e-7;                   ///< added to the sum under the square root, at least 0
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
  /// Whether decay, too, applies only to the rows of an embedding's table that a step looked up;
  /// without it, these are the only rows that change.
  bool lazy_rows = false;
};

/// Adagrad (Duchi et al., 2011; keras.optimizers.Adagrad): a = initial value + sum of g²,
/// w -= rate·g / sqrt(a + epsilon). Slots: "accumulator". Throws ConfigError for a negative option.
class Adagrad : public OptimizerHandle {
 public:
  explicit Adagrad(LearningRate learning_rate = 0.001, AdagradOptions options = {});
};

}  // namespace tessera
