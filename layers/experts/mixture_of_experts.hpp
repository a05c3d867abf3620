#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of MixtureOfExperts.
struct MixtureOfExpertsOptions {
  int64_t num_experts = 0;     ///< E, from 1 on; to be given
  int64_t hidden_dim = 0;      ///< features between an expert's two layers, from 1 on; to be given
  int64_t top_k = 2;           ///< experts that work on a token: 1 (Switch) or 2 (GShard)
  double capacity_factor = 2;  ///< slots for each token of a group, in training
  double eval_capacity_factor = 2;  ///< the same outside of training
  double aux_loss = 0.01;           ///< factor of the loss that has experts chosen evenly; 0: none
  double z_loss = 0;                ///< factor of the mean of logsumexp(logits)²; 0: none
  ActivationHandle activation = "relu";  ///< between an expert's two layers
  /// Who works second on a token, with a top_k of 2: "all": always the next likeliest; in training
  /// "sampling": one drawn by its share; "random": the next, with probability gate / threshold.
  std::string second_expert_policy = "all";
  double second_expert_threshold = 0.2;  ///< of "random"
  /// Whether two gates add up to 1 before slots are given, and means of losses count tokens that a
  /// mask leaves out as zeros; else afterwards, and means are of the others (Lingvo's name).
  bool legacy_mtf_behavior = true;
  std::string dispatch = "einsum";  ///< how tokens come into slots: "einsum" or "sort"
  bool use_bias = true;             ///< adds `expert_1/bias` and `expert_2/bias`
  InitializerHandle router_initializer = "glorot_uniform";  ///< first values of `router/kernel`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< of the experts' kernels, each alone
  InitializerHandle bias_initializer = "zeros";             ///< first values of the biases
  RegularizerHandle kernel_regularizer = {};                ///< penalty on the experts' kernels
  RegularizerHandle bias_regularizer = {};                  ///< penalty on their biases
  RegularizerHandle activity_regularizer = {};  ///< penalty on the output, divided by the rows
  ConstraintHandle kernel_constraint = {};      ///< what the experts' kernels are brought back to
  ConstraintHandle bias_constraint = {};        ///< what their biases are brought back to
  std::optional<int64_t> seed = std::nullopt;   ///< folded into the stream of random numbers
  std::string name = "";                        ///< first part of the weights' paths
  std::string dtype = "";                       ///< policy; the default one if empty
  bool trainable = true;                        ///< whether training changes the weights
};

/// Two dense layers of which there are E, the experts, and a router that has one or two of them
/// work on each token (GShard, arXiv 2006.16668; Switch, arXiv 2101.03961; the formulas are
/// Lingvo's): y = Σ gate · expert(x), gates softmax(x · router), normalized if there are two.
///
/// A group, in which tokens compete for slots, is one sequence of the batch, so that numbers do not
/// depend on the mesh. In a group an expert has C = ⌊T · capacity_factor / E⌋ slots, of which with
/// a top_k of 2 there are at least 4 and a multiple of 4; at least 1, and never more than T. First
/// choices come first, then earlier tokens; of equal gates the lowest expert is chosen. A choice
/// without a slot is dropped: it adds nothing to y. So capacity_factor = E drops none. Tokens that
/// the input's mask leaves out choose nothing.
///
/// Losses, in training and evaluation: aux_loss · mean over groups of E · Σ f_e P_e, f_e the share
/// of tokens whose first choice is e, P_e the mean gate of e; z_loss · mean of logsumexp(logits)².
/// Metrics, in logs: "PATH/load_entropy", of the shares of choices, over log E: 1 where all experts
/// are chosen alike; "PATH/dropped", the share of choices that found no slot. Their counts are
/// whole numbers, the same on every mesh.
///
/// Shape: (batch, T, d) -> (batch, T, d). The mask stays. Gates and losses are of float32 at least.
/// Weights: router/kernel (d, E), expert_1/kernel (E, d, hidden_dim), expert_1/bias (E,
/// hidden_dim), expert_2/kernel (E, hidden_dim, d), expert_2/bias (E, d).
/// Values that layout maps place: "router", the logits (batch, T, E), "dispatched", tokens in slots
/// (E, batch, C, d), and "combined", what the experts give, of the same shape.
/// Communication: none if only the batch is cut, by "batch" and "expert"; experts that are cut are
/// gathered then. With the experts and "dispatched" cut by "expert" and "combined" by the batch
/// alone, each expert stays where it is: two all-to-alls forward and two backward.
///
/// "einsum" multiplies by a tensor (batch, T, E, C), where E · C is about T; "sort" takes rows by
/// number, with less work once T is in the hundreds, and gives the same but for rounding.
///
///     MixtureOfExperts({.num_experts = 8, .hidden_dim = 1024})
class MixtureOfExperts : public LayerHandle {
 public:
  /// Throws ConfigError for an option that is not as said.
  explicit MixtureOfExperts(const MixtureOfExpertsOptions& options);
};

}  // namespace tessera
