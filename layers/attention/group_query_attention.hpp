#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of GroupQueryAttention.
struct GroupQueryAttentionOptions {
  double dropout = 0;                                    ///< share of the attention scores dropped
  bool use_bias = true;                                  ///< adds a bias to each projection
  std::optional<int64_t> sliding_window = std::nullopt;  ///< steps attend to nearer ones only
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< first values of each kernel
  InitializerHandle bias_initializer = "zeros";             ///< first values of each bias
  RegularizerHandle kernel_regularizer = {};                ///< penalty on each kernel
  RegularizerHandle bias_regularizer = {};                  ///< penalty on each bias
  RegularizerHandle activity_regularizer = {};  ///< penalty on projections and outputs, by rows
  ConstraintHandle kernel_constraint = {};      ///< what each kernel is brought back to
  ConstraintHandle bias_constraint = {};        ///< what each bias is brought back to
  bool use_gate = false;  ///< multiplies what heads give by sigmoids of a projected query
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the stream of random numbers
  bool use_causal_mask = false;          ///< no step attends to a later one; Keras: of the call
  bool return_attention_scores = false;  ///< scores as a second output; Keras: of the call
  std::string name = "";                 ///< first part of the weights' paths
  std::string dtype = "";                ///< policy; the default one if empty
  bool trainable = true;                 ///< whether training changes the weights
};

/// Attention of several heads of a query, of which groups share a head of key and value
/// (keras.layers.GroupQueryAttention, arXiv 2305.13245): with q, k and v projections of query, key
/// and value, softmax(q · k / sqrt(head_dim)) · v for each head of the query, projected back. One
/// head of key and value is multi-query attention; as many as the query has, MultiHeadAttention.
///
/// Shape: query (batch, T, features), value (batch, S, features), then key (batch, S, …), by
/// default the value, and attention_mask, bool (batch, T, S), which says what each step may attend
/// to -> (batch, T, features), and with return_attention_scores the scores after softmax, (batch,
/// query heads, T, S). Masks of query, value and key leave steps out.
/// With use_causal_mask and a KeyValueCache the inputs are the new steps alone, and attend to all.
/// Weights, each a kernel and a bias: query (features, query heads, head_dim), key and value
/// (features, key and value heads, head_dim), gate with use_gate as query's, attention_output
/// (query heads, head_dim, features).
/// Communication: none if the batch is sharded. Kernels sharded on the heads shard all of the
/// computation, for one all-reduce of the output, and for heads of key and value that a device
/// lacks where their number is no multiple of the devices'.
///
///     GroupQueryAttention(64, 8, 2, {.use_causal_mask = true})({value, value})
class GroupQueryAttention : public LayerHandle {
 public:
  /// Heads of `head_dim` features. Throws ConfigError for a size < 1, for query heads that are no
  /// multiple of those of key and value, and for a dropout outside [0, 1).
  GroupQueryAttention(int64_t head_dim, int64_t num_query_heads, int64_t num_key_value_heads,
                      const GroupQueryAttentionOptions& options = {});
};

}  // namespace tessera
