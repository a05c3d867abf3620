#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of MultiHeadAttention.
struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = std::nullopt;  ///< features of a value (default: key_dim)
  double dropout = 0;                               ///< dropout rate of the attention weights
  bool use_bias = true;                             ///< whether each projection has a bias
  Shape output_shape = {};  ///< output axes per step (default: the query's features)
  std::vector<int64_t> attention_axes = {};              ///< default: all but batch and features
  std::optional<int64_t> sliding_window = std::nullopt;  ///< attends only to steps closer than this
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of each kernel
  InitializerHandle bias_initializer = "zeros";             ///< initializer of each bias
  RegularizerHandle kernel_regularizer = {};                ///< penalty on each kernel
  RegularizerHandle bias_regularizer = {};                  ///< penalty on each bias
  RegularizerHandle activity_regularizer = {};  ///< penalty on projections, divided by the rows
  ConstraintHandle kernel_constraint = {};      ///< constraint on each kernel
  ConstraintHandle bias_constraint = {};        ///< constraint on each bias
  bool use_gate = false;  ///< whether to gate heads by sigmoid(projection of the query)
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  bool use_causal_mask = false;                ///< whether to mask later steps (Keras: in call())
  bool return_attention_scores = false;        ///< whether to return the scores (Keras: in call())
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Multi-head attention (keras.layers.MultiHeadAttention, arXiv 1706.03762): with q, k and v
/// projections of query, key and value, each head is softmax(q · k / sqrt(key_dim)) · v; an output
/// projection follows.
///
/// Shape: query (batch, T, features), value (batch, S, …), then optionally key (batch, S, …), by
/// default the value, and attention_mask, bool (batch, T, S), true where a step may attend ->
/// (batch, T, output_shape); with return_attention_scores also the scores after softmax,
/// (batch, heads, T, S). Masks of query, value and key exclude steps. A step that may attend to
/// nothing gets zeros from every head. With several axes between batch and features, T and S are
/// the attended ones; a causal mask and a window need a single one.
/// With use_causal_mask and a KeyValueCache, the inputs are the new steps only; they attend to
/// cached and new steps.
/// Weights, each a kernel and a bias: query and key (features, heads, key_dim), gate with use_gate
/// and value (features, heads, value_dim), attention_output (heads, value_dim, output).
/// Communication: none if the batch is sharded; kernels sharded on the heads shard the whole
/// computation, at the cost of one all-reduce of the output.
///
///     MultiHeadAttention(8, 64, {.use_causal_mask = true})({value, value})
class MultiHeadAttention : public LayerHandle {
 public:
  /// `num_heads` heads; queries and keys have `key_dim` features per head. Throws ConfigError for a
  /// size < 1 or a dropout outside [0, 1).
  MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                     const MultiHeadAttentionOptions& options = {});
};

}  // namespace tessera
