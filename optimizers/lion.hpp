#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Lion.
struct LionOptions {
  double beta_1 = 0.9;   ///< weight of the momentum in the update, in (0, 1]
  double beta_2 = 0.99;  ///< decay of the momentum, in [0, 1]
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

/// Lion (Chen et al., 2023; keras.optimizers.Lion): w -= rate·sign(beta_1·m + (1 - beta_1)·g), then
/// m = beta_2·m + (1 - beta_2)·g. Slots: "momentum". Throws ConfigError unless beta_1 is in (0, 1]
/// and beta_2 in [0, 1].
class Lion : public OptimizerHandle {
 public:
  explicit Lion(LearningRate learning_rate = 0.001, LionOptions options = {});
};

}  // namespace tessera
