#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of MultiHeadAttention.
struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = std::nullopt;  ///< features of a value; key_dim if absent
  double dropout = 0;                               ///< share of the attention scores dropped
  bool use_bias = true;                             ///< adds a bias to each projection
  Shape output_shape = {};                          ///< of a step; the query's features if empty
  std::vector<int64_t> attention_axes = {};         ///< all but batch and features if empty
  std::optional<int64_t> sliding_window = std::nullopt;     ///< steps attend to nearer ones only
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< first values of each kernel
  InitializerHandle bias_initializer = "zeros";             ///< first values of each bias
  RegularizerHandle kernel_regularizer = {};                ///< penalty on each kernel
  RegularizerHandle bias_regularizer = {};                  ///< penalty on each bias
  RegularizerHandle activity_regularizer = {};  ///< penalty on projections, divided by the rows
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

/// Attention of several heads (keras.layers.MultiHeadAttention, arXiv 1706.03762): with q, k and v
/// projections of query, key and value for each head, softmax(q · k / sqrt(key_dim)) · v, projected
/// back.
///
/// Shape: query (batch, T, features), value (batch, S, …), then key (batch, S, …), by default the
/// value, and attention_mask, bool (batch, T, S), which says what each step may attend to ->
/// (batch, T, output_shape), and with return_attention_scores the scores after softmax,
/// (batch, heads, T, S). Masks of query, value and key leave steps out.
/// With use_causal_mask and a KeyValueCache the inputs are the new steps alone, and attend to all.
/// Weights, each a kernel and a bias: query and key (features, heads, key_dim), gate with use_gate
/// and value (features, heads, value_dim), attention_output (heads, value_dim, output).
/// Communication: none if the batch is sharded; kernels sharded on the heads shard all of the
/// computation, for one all-reduce of the output.
///
///     MultiHeadAttention(8, 64, {.use_causal_mask = true})({value, value})
class MultiHeadAttention : public LayerHandle {
 public:
  /// `num_heads` heads with `key_dim` features of a query and a key. Throws ConfigError for a size
  /// < 1 or a dropout outside [0, 1).
  MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                     const MultiHeadAttentionOptions& options = {});
};

}  // namespace tessera
