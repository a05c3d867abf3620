#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of AdamW.
struct AdamWOptions {
  std::optional<double> weight_decay = 0.004;      ///< decoupled weight decay; must be set
  double beta_1 = 0.9;                             ///< decay of the mean of gradients m, in [0, 1)
  double beta_2 = 0.999;                           ///< decay of the mean of squares v, in [0, 1)
  double epsilon = 1e-7;                           ///< added to sqrt(v), at least 0
  bool amsgrad = false;                            ///< whether to divide by the largest v so far
  std::optional<double> clipnorm = std::nullopt;   ///< max norm of each gradient; none: off
  std::optional<double> clipvalue = std::nullopt;  ///< max |gradient element|; none: off
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
  /// Whether to add epsilon to the square root of the bias-corrected v, as PyTorch does, rather
  /// than to sqrt(v), as Keras does.
  bool epsilon_on_corrected_root = false;
};

/// Adam with decoupled weight decay, w -= w · rate · weight_decay before each update (Loshchilov
/// and Hutter, 2017; keras.optimizers.AdamW). Slots: "momentum", "velocity", with amsgrad
/// "velocity_hat". Throws ConfigError without a weight_decay, and unless the betas are in [0, 1)
/// and epsilon >= 0.
class AdamW : public OptimizerHandle {
 public:
  explicit AdamW(LearningRate learning_rate = 0.001, AdamWOptions options = {});
};

}  // namespace tessera
