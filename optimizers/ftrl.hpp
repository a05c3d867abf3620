#pragma once

#include <optional>
#include <string>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Ftrl.
struct FtrlOptions {
  double learning_rate_power = -0.5;       ///< -p, at most 0; 0 for a fixed rate
  double initial_accumulator_value = 0.1;  ///< initial value of the sum of squares, at least 0
  double l1_regularization_strength = 0;   ///< l1, at least 0
  double l2_regularization_strength = 0;   ///< l2, at least 0
  double l2_shrinkage_regularization_strength = 0;  ///< s, at least 0: adds 2 · s · w to g
  double beta = 0;                                  ///< adds beta / (2 · rate) to l2
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

/// Follow the regularized leader (McMahan et al., 2013; keras.optimizers.Ftrl): n sums g², z sums
/// g - (n_new^p - n^p) / rate · w, and w is (clip(z, ±l1) - z) / (n^p / rate + 2 · l2), with -p the
/// learning_rate_power. Slots: "accumulator", "linear". Throws ConfigError for a positive power and
/// for a negative strength.
class Ftrl : public OptimizerHandle {
 public:
  explicit Ftrl(LearningRate learning_rate = 0.001, FtrlOptions options = {});
};

}  // namespace tessera
