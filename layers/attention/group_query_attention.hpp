#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of GroupQueryAttention.
struct GroupQueryAttentionOptions {
  double dropout = 0;                                    ///< dropout rate of the attention weights
  bool use_bias = true;                                  ///< whether each projection has a bias
  std::optional<int64_t> sliding_window = std::nullopt;  ///< attends only to steps closer than this
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of each kernel
  InitializerHandle bias_initializer = "zeros";             ///< initializer of each bias
  RegularizerHandle kernel_regularizer = {};                ///< penalty on each kernel
  RegularizerHandle bias_regularizer = {};                  ///< penalty on each bias
  RegularizerHandle activity_regularizer = {};  ///< penalty on projections and outputs, by rows
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

/// Grouped-query attention: groups of query heads share a key and value head
/// (keras.layers.GroupQueryAttention, arXiv 2305.13245). With q, k and v projections of query, key
/// and value, each query head is softmax(q · k / sqrt(head_dim)) · v; an output projection follows.
/// One key and value head gives multi-query attention; as many as query heads give
/// MultiHeadAttention.
///
/// Shape: query (batch, T, features), value (batch, S, features), then optionally key (batch, S,
/// …), by default the value, and attention_mask, bool (batch, T, S), true where a step may attend
/// -> (batch, T, features); with return_attention_scores also the scores after softmax, (batch,
/// query heads, T, S). Masks of query, value and key exclude steps. A step that may attend to
/// nothing gets zeros from every head.
/// With use_causal_mask and a KeyValueCache, the inputs are the new steps only; they attend to
/// cached and new steps.
/// Weights, each a kernel and a bias: query (features, query heads, head_dim), key and value
/// (features, key and value heads, head_dim), with use_gate gate, shaped like query, and
/// attention_output (query heads, head_dim, features).
/// Communication: none if the batch is sharded. Kernels sharded on the heads shard the whole
/// computation, at the cost of one all-reduce of the output; if the number of key and value heads
/// is no multiple of the number of devices, devices also fetch the heads they lack.
///
///     GroupQueryAttention(64, 8, 2, {.use_causal_mask = true})({value, value})
class GroupQueryAttention : public LayerHandle {
 public:
  /// Each head has `head_dim` features. Throws ConfigError for a size < 1, if num_query_heads is no
  /// multiple of num_key_value_heads, and for a dropout outside [0, 1).
  GroupQueryAttention(int64_t head_dim, int64_t num_query_heads, int64_t num_key_value_heads,
                      const GroupQueryAttentionOptions& options = {});
};

}  // namespace tessera
