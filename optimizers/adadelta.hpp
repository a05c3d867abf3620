#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adadelta.
struct AdadeltaOptions {
  double rho = 0.95;      ///< share of the former means in the next, in [0, 1]
  double epsilon = 1e-7;  ///< added to both means under the roots, at least 0
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

/// Adadelta (Zeiler, 2012; keras.optimizers.Adadelta): d = g · sqrt(u + epsilon) / sqrt(a +
/// epsilon) with a and u the running means of g² and d², w -= rate·d. Slots: "accumulated_grad",
/// "accumulated_delta_var". Throws ConfigError unless rho lies in [0, 1] and epsilon >= 0.
class Adadelta : public OptimizerHandle {
 public:
  explicit Adadelta(LearningRate learning_rate = 0.001, AdadeltaOptions options = {});
};

}  // namespace tessera
