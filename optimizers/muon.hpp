#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Muon.
struct MuonOptions {
  double adam_beta_1 = 0.9;    ///< Adam's share of the former mean of gradients, in [0, 1)
  double adam_beta_2 = 0.999;  ///< Adam's share of the former mean of squares, in [0, 1)
  std::optional<double> adam_weight_decay = 0.004;  ///< weight_decay of what Adam updates
  double epsilon = 1e-7;  ///< added to the root of Adam's mean of squares, at least 0
  /// Before each update w -= w · rate · weight_decay; none: weights do not decay.
  std::optional<double> weight_decay = 0.004;
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
  /// RE2 expressions; Adam updates the variables whose path one matches in some part.
  std::vector<std::string> exclude_layers = {};
  bool exclude_embeddings = true;  ///< Adam updates variables with "embedding" in their path
  double muon_a = 3.4445;          ///< factor of x in an iteration
  double muon_b = -4.7750;         ///< factor of x·xᵀ·x in an iteration
  double muon_c = 2.0315;          ///< factor of (x·xᵀ)²·x in an iteration
  double adam_lr_ratio = 1;        ///< Adam's rate by that of matrices, at least 0
  double momentum = 0.95;          ///< share of the former momentum that is kept, in [0, 1]
  int64_t ns_steps = 5;            ///< iterations, at least 0
  bool nesterov = true;            ///< looks ahead along the momentum
  /// Factor of an update, with the root of the matrix's longer side; none: neither.
  std::optional<double> rms_rate = 0.2;
};

/// Muon (Jordan et al., 2024; keras.optimizers.Muon): matrices move by their momentum, made nearly
/// orthogonal by Newton-Schulz iterations; all other variables, embeddings and what exclude_layers
/// matches move as by Adam, at adam_lr_ratio of the rate. Slots: "momentum", of what Adam updates
/// "velocity" too.
///
/// Communication: a matrix that is cut is gathered once a step for its iterations. Throws
/// ConfigError for an expression that RE2 does not take, betas outside [0, 1), a momentum outside
/// [0, 1] and a negative ns_steps.
class Muon : public OptimizerHandle {
 public:
  explicit Muon(LearningRate learning_rate = 0.001, MuonOptions options = {});
};

}  // namespace tessera
