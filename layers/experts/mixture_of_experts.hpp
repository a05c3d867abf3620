#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of MixtureOfExperts.
struct MixtureOfExpertsOptions {
  int64_t num_experts = 0;          ///< number of experts E, at least 1 (required)
  int64_t hidden_dim = 0;           ///< features between an expert's layers, at least 1 (required)
  int64_t top_k = 2;                ///< experts per token: 1 (Switch), 2 (GShard) or more
  double capacity_factor = 2;       ///< slots per token of a group, in training
  double eval_capacity_factor = 2;  ///< slots per token of a group, outside training
  double aux_loss = 0.01;           ///< factor of the load-balancing loss; 0: none
  double z_loss = 0;                ///< factor of the mean of logsumexp(logits)²; 0: none
  ActivationHandle activation = "relu";  ///< activation between an expert's layers
  /// The second expert of a token with a top_k of 2. "all": always the second most probable; in
  /// training, "sampling": drawn in proportion to its gate; "random": the second most probable,
  /// with probability gate / threshold.
  std::string second_expert_policy = "all";
  double second_expert_threshold = 0.2;  ///< threshold of "random"
  /// Whether the gates of a token are normalized to a sum of 1 before slots are assigned, and loss
  /// means count masked tokens as zeros; otherwise gates are normalized afterwards, and means skip
  /// masked tokens (Lingvo's name).
  bool legacy_mtf_behavior = true;
  std::string dispatch = "einsum";  ///< how tokens get to experts: "einsum", "sort" or "dropless"
  bool use_bias = true;             ///< whether to add `expert_1/bias` and `expert_2/bias`
  InitializerHandle router_initializer = "glorot_uniform";  ///< initializer of `router/kernel`
  InitializerHandle kernel_initializer =
      "glorot_uniform";                          ///< initializer of each expert's kernels
  InitializerHandle bias_initializer = "zeros";  ///< initializer of the biases
  RegularizerHandle kernel_regularizer = {};     ///< penalty on the experts' kernels
  RegularizerHandle bias_regularizer = {};       ///< penalty on their biases
  RegularizerHandle activity_regularizer = {};   ///< penalty on the output, per row
  ConstraintHandle kernel_constraint = {};       ///< constraint on the experts' kernels
  ConstraintHandle bias_constraint = {};         ///< constraint on their biases
  std::optional<int64_t> seed = std::nullopt;    ///< folded into the model's random stream
  std::string name = "";                         ///< first component of the weights' paths
  std::string dtype = "";                        ///< dtype policy (default: the global policy)
  bool trainable = true;                         ///< whether training changes the weights
};

/// Mixture of experts: E experts of two dense layers each, and a router that sends each token to
/// top_k of them (GShard, arXiv 2006.16668; Switch, arXiv 2101.03961; formulas as in Lingvo).
/// y = Σ gate · expert(x), with gates softmax(x · router), normalized over the chosen experts if
/// there are several.
///
/// Tokens compete for slots within a group. A group is one sequence of the batch, so results do not
/// depend on the mesh. Each expert has C = ⌊T · capacity_factor / E⌋ slots per group, at least 1
/// and at most T; with a top_k of 2 or more, at least 4 and rounded up to a multiple of 4. Slots
/// are assigned to first choices before later ones, and to earlier tokens before later ones; equal
/// gates choose the lowest expert. A choice without a slot is dropped and adds nothing to y;
/// `capacity_factor = E` drops none. Masked tokens choose no expert.
///
/// Losses, in training and evaluation: aux_loss · mean over groups of E · Σ f_e P_e, with f_e the
/// fraction of tokens whose first choice is e and P_e the mean gate of e; z_loss · mean of
/// logsumexp(logits)².
/// Metrics, in logs: "PATH/load_entropy", the entropy of the distribution of choices over experts,
/// divided by log E: 1 if all experts are chosen equally often; "PATH/dropped", the fraction of
/// choices that got no slot. Both are computed from integer counts and are the same on every mesh.
///
/// Shape: (batch, T, d) -> (batch, T, d). The mask passes through. Gates and losses are computed in
/// at least float32.
/// Weights: router/kernel (d, E), expert_1/kernel (E, d, hidden_dim), expert_1/bias (E,
/// hidden_dim), expert_2/kernel (E, hidden_dim, d), expert_2/bias (E, d).
/// Values that layout maps place: "router", the logits (batch, T, E); "dispatched", the tokens in
/// slots (E, batch, C, d); and "combined", the experts' outputs, of the same shape.
/// Communication: none if only the batch is sharded, over "batch" and "expert"; sharded experts are
/// then all-gathered. With the experts and "dispatched" sharded over "expert" and "combined"
/// sharded on the batch only, experts are not moved: two all-to-alls forward and two backward.
///
/// "einsum" multiplies by a tensor (batch, T, E, C), where E · C is about T; "sort" gathers rows by
/// index, which is less work once T is in the hundreds. Results are equal up to rounding.
/// "dropless" has no slots and drops no choice, whatever the capacity factors: tokens are sorted by
/// expert, and each expert multiplies as many as chose it (MegaBlocks, arXiv 2211.15841;
/// ops::grouped_matmul), which is as much work as top_k dense layers. Tokens stay where they are,
/// so "dispatched" and "combined" do not exist; sharded experts are all-gathered if the same mesh
/// dimension shards the batch.
///
///     MixtureOfExperts({.num_experts = 8, .hidden_dim = 1024})
class MixtureOfExperts : public LayerHandle {
 public:
  /// Throws ConfigError for an invalid option.
  explicit MixtureOfExperts(const MixtureOfExpertsOptions& options);
};

}  // namespace tessera
