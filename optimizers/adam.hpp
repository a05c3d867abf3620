#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adam.
struct AdamOptions {
  double beta_1 = 0.9;    ///< decay of the mean of gradients m, in [0, 1)
  double beta_2 = 0.999;  ///< decay of the mean of squares v, in [0, 1)
  double epsilon = 1e-7;  ///< added to sqrt(v), at least 0
  bool amsgrad = false;   ///< whether to divide by the largest v so far
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
  /// looked up (PyTorch's SparseAdam); the other rows keep their momentum and are not decayed.
  bool lazy_rows = false;
  /// Whether to add epsilon to the square root of the bias-corrected v, as PyTorch and the Core-API
  /// guide do, rather than to sqrt(v), as Keras does, where its effect is up to 30 times larger.
  bool epsilon_on_corrected_root = false;
};

/// Adam (Kingma and Ba, 2014; keras.optimizers.Adam): m and v are running means of g and g²,
/// w -= rate·sqrt(1 - beta_2^t)/(1 - beta_1^t) · m / (sqrt(v) + epsilon); with amsgrad v is the
/// largest so far. Slots: "momentum", "velocity", with amsgrad "velocity_hat". Throws ConfigError
/// unless the betas are in [0, 1) and epsilon >= 0.
///
///     Adam(CosineDecay(1e-3, 10000), {.global_clipnorm = 1})
class Adam : public OptimizerHandle {
 public:
  explicit Adam(LearningRate learning_rate = 0.001, AdamOptions options = {});
};

}  // namespace tessera
