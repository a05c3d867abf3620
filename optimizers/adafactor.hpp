#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Adafactor; those from weight_decay on as in BaseOptions.
struct AdafactorOptions {
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30;
  double epsilon_2 = 1e-3;
  double clip_threshold = 1;
  bool relative_step = true;  ///< without effect, as in Keras: the rate is bounded either way
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

/// Adafactor (Shazeer and Stern, 2018; keras.optimizers.Adafactor): of tensors of 2 axes and more
/// the means of g² along the last axis ("r") and along the one before it ("c") stand for those of
/// the elements; the update is clipped by its root mean square, and the rate, at most 1 / sqrt(t),
/// is relative to that of the weights. Means and squares are those of the whole variable however it
/// is cut. Throws ConfigError unless beta_2_decay <= 0, the epsilons >= 0 and clip_threshold > 0.
class Adafactor : public OptimizerHandle {
 public:
  explicit Adafactor(LearningRate learning_rate = 0.001, AdafactorOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Adafactor from_config(JsonObject& config);
};

}  // namespace tessera
