#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adadelta; those from weight_decay on as in BaseOptions.
struct AdadeltaOptions {
  double rho = 0.95;
  double epsilon = 1e-7;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
};

/// Adadelta (Zeiler, 2012; keras.optimizers.Adadelta): d = g · sqrt(u + epsilon) / sqrt(a +
/// epsilon) with a and u the running means of g² and d², w -= rate·d. Throws ConfigError unless rho
/// lies in [0, 1] and epsilon >= 0.
class Adadelta : public OptimizerHandle {
 public:
  explicit Adadelta(LearningRate learning_rate = 0.001, AdadeltaOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Adadelta from_config(JsonObject& config);
};

}  // namespace tessera
