#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Muon.
struct MuonOptions {
  double adam_beta_1 = 0.9;    ///< Adam's decay of the mean of gradients, in [0, 1)
  double adam_beta_2 = 0.999;  ///< Adam's decay of the mean of squares, in [0, 1)
  std::optional<double> adam_weight_decay = 0.004;  ///< weight_decay of variables Adam updates
  double epsilon = 1e-7;  ///< added to the square root of Adam's mean of squares, at least 0
  /// Decoupled weight decay, w -= w · rate · weight_decay before each update; none: no decay.
  std::optional<double> weight_decay = 0.004;
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
  /// RE2 expressions; Adam updates variables whose path one of them matches partially.
  std::vector<std::string> exclude_layers = {};
  bool exclude_embeddings =
      true;                  ///< whether Adam updates variables with "embedding" in their path
  double muon_a = 3.4445;    ///< factor of x in an iteration
  double muon_b = -4.7750;   ///< factor of x·xᵀ·x in an iteration
  double muon_c = 2.0315;    ///< factor of (x·xᵀ)²·x in an iteration
  double adam_lr_ratio = 1;  ///< Adam's rate relative to the rate of matrices, at least 0
  double momentum = 0.95;    ///< decay of the momentum, in [0, 1]
  int64_t ns_steps = 5;      ///< Newton-Schulz iterations, at least 0
  bool nesterov = true;      ///< whether to use Nesterov momentum
  /// Multiplies updates by rms_rate · sqrt(the matrix' longer side); none: no scaling.
  std::optional<double> rms_rate = 0.2;
};

/// Muon (Jordan et al., 2024; keras.optimizers.Muon): the update of a matrix is its momentum,
/// orthogonalized by Newton-Schulz iterations. Adam, at adam_lr_ratio times the rate, updates all
/// other variables, embeddings and those that exclude_layers matches. Slots: "momentum", with Adam
/// also "velocity".
///
/// Communication: a sharded matrix is all-gathered once a step for the iterations. Throws
/// ConfigError for an invalid expression, betas outside [0, 1), a momentum outside [0, 1] and a
/// negative ns_steps.
class Muon : public OptimizerHandle {
 public:
  explicit Muon(LearningRate learning_rate = 0.001, MuonOptions options = {});
};

}  // namespace tessera
