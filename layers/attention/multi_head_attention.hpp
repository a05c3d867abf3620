#pragma once

#include <vector>

#include <tessera/layers/recurrent/wrapper.hpp>

namespace tessera {

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = std::nullopt;  ///< key_dim if absent
  double dropout = 0;                               ///< of the attention scores
  bool use_bias = true;
  Shape output_shape = {};                   ///< of each step; the query's features if empty
  std::vector<int64_t> attention_axes = {};  ///< all but batch and features if empty
  std::optional<int64_t> sliding_window = std::nullopt;  ///< steps attend to nearer ones only
  InitializerHandle kernel_initializer = "glorot_uniform";
  InitializerHandle bias_initializer = "zeros";
  RegularizerHandle kernel_regularizer = {};
  RegularizerHandle bias_regularizer = {};
  RegularizerHandle activity_regularizer = {};  ///< of each projection, divided by the rows
  ConstraintHandle kernel_constraint = {};
  ConstraintHandle bias_constraint = {};
  bool use_gate = false;  ///< the heads' results times sigmoids of a projection of the query
  std::optional<int64_t> seed = std::nullopt;
  bool use_causal_mask = false;          ///< no step attends to a later one; Keras: of the call
  bool return_attention_scores = false;  ///< as a second output; Keras: of the call
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Attention of several heads (keras.layers.MultiHeadAttention, arXiv 1706.03762): with q, k, v
/// projections of query, key and value for each head, softmax(q · k / sqrt(key_dim)) · v, projected
/// back. Inputs: query (batch, T, …), value (batch, S, …), then key, by default value, and
/// attention_mask, bool (batch, T, S), which says what each step may attend to. Masks of query,
/// value and key leave steps out. Outputs: (batch, T, output_shape), and with
/// return_attention_scores those (batch, heads, T, S), after dropout's place, before it.
/// Weights, each kernel and bias: query, key (features, heads, key_dim), gate, value (features,
/// heads, value_dim), attention_output (heads, value_dim, output).
/// Layouts: kernels cut on heads cut all of the computation, for one all-reduce of the output.
class MultiHeadAttentionLayer final : public WrapperLayer {
 public:
  MultiHeadAttentionLayer(int64_t num_heads, int64_t key_dim,
                          const MultiHeadAttentionOptions& options);
  std::string class_name() const override { return "MultiHeadAttention"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  /// Throws ShapeError for inputs that do not fit each other.
  Shapes output_shapes(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  /// Terms of einsum for queries, keys, and the scores of both.
  struct Letters {
    std::string query, key, scores;
  };
  std::vector<int64_t> axes(int64_t rank) const;
  Letters letters(int64_t rank) const;
  LayerHandle projection(const std::string& name, int64_t rank, int64_t bound,
                         const Shape& output) const;
  DTensor attention_mask(const Inputs& inputs) const;
  DTensor window(const DTensor& query, const DTensor& value) const;
  DTensor probabilities(const DTensor& scores, const DTensor& mask) const;
  DTensor dropped(const DTensor& scores, const CallContext& context) const;

  int64_t num_heads_, key_dim_, value_dim_;
  MultiHeadAttentionOptions options_;
};

class MultiHeadAttention : public LayerHandle {
 public:
  /// Throws ConfigError for a size < 1 or a dropout outside [0, 1).
  MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                     const MultiHeadAttentionOptions& options = {})
      : LayerHandle(std::make_shared<MultiHeadAttentionLayer>(num_heads, key_dim, options)) {}
  static MultiHeadAttention from_config(JsonObject& config);
};

}  // namespace tessera
