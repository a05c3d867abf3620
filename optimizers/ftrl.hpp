#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Ftrl; those from weight_decay on as in BaseOptions.
struct FtrlOptions {
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
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

/// Follow the regularized leader (McMahan et al., 2013; keras.optimizers.Ftrl): n sums g², z sums
/// g - (n_new^-p - n^-p) / rate · w, and w is (clip(z, ±l1) - z) / (n^-p / rate + 2 · l2), with p
/// the learning_rate_power. Throws ConfigError for a positive power and for a negative strength.
class Ftrl : public OptimizerHandle {
 public:
  explicit Ftrl(LearningRate learning_rate = 0.001, FtrlOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Ftrl from_config(JsonObject& config);
};

}  // namespace tessera
