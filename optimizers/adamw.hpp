#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of AdamW.
struct AdamWOptions {
  std::optional<double> weight_decay = 0.004;  ///< before updates w -= w · rate · this; not none
  double beta_1 = 0.9;    ///< share of the former mean of gradients in the next, in [0, 1)
  double beta_2 = 0.999;  ///< share of the former mean of squares in the next, in [0, 1)
  double epsilon = 1e-7;  ///< added to the root of the mean of squares, at least 0
  bool amsgrad = false;   ///< divides by the largest mean of squares so far
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
  /// Adds epsilon to the root of the bias-corrected mean of squares, as PyTorch does, where Keras
  /// adds it to the root of the mean.
  bool epsilon_on_corrected_root = false;
};

/// Adam with decoupled weight decay, w -= w · rate · weight_decay before each of its updates
/// (Loshchilov and Hutter, 2017; keras.optimizers.AdamW). Slots: "momentum", "velocity", with
/// amsgrad "velocity_hat". Throws ConfigError without a weight_decay, and unless the betas lie in
/// [0, 1) and epsilon >= 0.
class AdamW : public OptimizerHandle {
 public:
  explicit AdamW(LearningRate learning_rate = 0.001, AdamWOptions options = {});
};

}  // namespace tessera
