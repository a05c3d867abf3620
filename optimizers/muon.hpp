#pragma once

#include <tessera/framework/nn/optimizer/optimizer.hpp>

namespace tessera {

/// The options of Muon; those from weight_decay to name as in BaseOptions.
struct MuonOptions {
  double adam_beta_1 = 0.9;
  double adam_beta_2 = 0.999;
  std::optional<double> adam_weight_decay = 0.004;  ///< of variables that Adam updates
  double epsilon = 1e-7;
  std::optional<double> weight_decay = 0.004;
  std::optional<double> clipnorm = std::nullopt;
  std::optional<double> clipvalue = std::nullopt;
  std::optional<double> global_clipnorm = std::nullopt;
  bool use_ema = false;
  double ema_momentum = 0.99;
  std::optional<int64_t> ema_overwrite_frequency = std::nullopt;
  std::optional<double> loss_scale_factor = std::nullopt;
  std::optional<int64_t> gradient_accumulation_steps = std::nullopt;
  std::string name = "";
  /// RE2 expressions that match some part of a variable's path.
  std::vector<std::string> exclude_layers = {};
  bool exclude_embeddings = true;  ///< those with "embedding" in their path
  double muon_a = 3.4445;
  double muon_b = -4.7750;
  double muon_c = 2.0315;
  double adam_lr_ratio = 1;
  double momentum = 0.95;
  int64_t ns_steps = 5;
  bool nesterov = true;
  /// The update is scaled by this and the root of the matrix's longer side.
  std::optional<double> rms_rate = 0.2;
};

/// Muon (Jordan et al., 2024; keras.optimizers.Muon): matrices move by their momentum, made nearly
/// orthogonal by Newton-Schulz iterations on the whole matrix, which is gathered for that if it is
/// cut; all other variables, embeddings and what exclude_layers matches move as by Adam, at
/// adam_lr_ratio of the rate. Throws ConfigError for an expression that RE2 does not take, betas
/// outside [0, 1), a momentum outside [0, 1] and a negative ns_steps.
class Muon : public OptimizerHandle {
 public:
  explicit Muon(LearningRate learning_rate = 0.001, MuonOptions options = {});
  /// From Keras' config; absent keys are the defaults. Throws ConfigError naming a wrong value.
  static Muon from_config(JsonObject& config);
};

}  // namespace tessera
