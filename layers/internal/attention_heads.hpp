#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/attention/rotary.hpp>
#include <tessera/layers/core/einsum_dense.hpp>
#include <tessera/layers/internal/wrapper.hpp>

namespace tessera::detail {

/// Returns whether ops::attention moves no more data than computing the scores would. `query` and
/// `key` are (batch, …, heads, features): features must be replicated, and the key's axis `steps`
/// replicated or sharded like the query's. Callers must not need the scores.
bool can_use_fused_attention(const DTensor& query, const DTensor& key, int64_t steps);

/// Repeats heads of keys or values (batch, steps, heads, features) for the query heads that share
/// them.
DTensor repeated_heads(const DTensor& x, int64_t query_heads);

/// Options of a layer that HeadAttention needs.
struct HeadOptions {
  int64_t key_dim;  ///< features of a query and a key
  double dropout;
  std::optional<int64_t> window, seed;
  bool causal, scores, use_bias, use_gate;
  std::vector<int64_t> axes;            ///< attended axes; empty: all between batch and features
  EinsumDenseOptions projection;        ///< initializers, regularizers and constraints
  bool use_output_bias = true;          ///< whether the output projection has a bias
  std::optional<double> scale = {};     ///< scale of the scores (default: 1 / sqrt(key_dim))
  std::optional<double> soft_cap = {};  ///< bound of the scores
  std::optional<double> norm_epsilon = {};        ///< epsilon of the RMS norms of queries and keys
  bool norm_unit_offset = false;                  ///< their add_unit_offset
  std::optional<ops::RotaryOptions> rotary = {};  ///< rotates queries and keys (batch, T, features)
};
template <class Options>
HeadOptions head_options(const Options& o, int64_t key_dim) {
  HeadOptions options{.key_dim = key_dim,
                      .dropout = o.dropout,
                      .window = o.sliding_window,
                      .seed = o.seed,
                      .causal = o.use_causal_mask,
                      .scores = o.return_attention_scores,
                      .use_bias = o.use_bias,
                      .use_gate = o.use_gate,
                      .axes = {},
                      .projection = {.kernel_initializer = o.kernel_initializer,
                                     .bias_initializer = o.bias_initializer,
                                     .kernel_regularizer = o.kernel_regularizer,
                                     .bias_regularizer = o.bias_regularizer,
                                     .activity_regularizer = o.activity_regularizer,
                                     .kernel_constraint = o.kernel_constraint,
                                     .bias_constraint = o.bias_constraint},
                      .use_output_bias = o.use_bias};
  if constexpr (requires { o.attention_axes; }) options.axes = o.attention_axes;
  return options;
}

/// Base of layers that attend with several heads to a value, by projections that are EinsumDense
/// layers: masks, dropout, key-value cache and output projection. A derived class defines the
/// output shapes, and calls add_projections() in make_weights(). Inputs are query, value and
/// optionally key, attention mask and positions, by which rotary options rotate.
class HeadAttention : public WrapperLayer {
 public:
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }

 protected:
  /// Numbers of heads and features to which each input is projected, and the output's last axes.
  struct HeadShapes {
    Shape query, key, gate, value, output;
  };
  /// Einsum terms of queries, keys and their scores.
  struct EinsumTerms {
    std::string query, key, scores;
  };
  HeadAttention(const LayerOptions& common, HeadOptions options)
      : WrapperLayer(common), options_(std::move(options)) {}
  /// Makes and builds the projections, whose attributes in Keras' class begin with `prefix`.
  void add_projections(const Shapes& inputs, const std::string& prefix, const HeadShapes& heads);
  /// Returns the axes that are attended over, of inputs of this rank. Throws ShapeError.
  std::vector<int64_t> axes(int64_t rank) const;
  EinsumTerms einsum_terms(int64_t rank) const;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  /// Repeats each key or value head for the query heads that share it.
  virtual DTensor repeated(const DTensor& x) const { return x; }
  LayerHandle projection(const std::string& name, int64_t rank, int64_t bound,
                         const Shape& output) const;
  std::vector<DTensor> masks_by_axes(const Inputs& inputs) const;
  bool can_fuse(const DTensor& q, const DTensor& k, const CallContext& context) const;
  DTensor with_dropout(const DTensor& scores, const CallContext& context) const;
  void add_norms(const HeadShapes& heads);
  DTensor scaled_scores(const DTensor& q, const DTensor& k, const EinsumTerms& terms) const;
  DTensor rotated(const DTensor& heads, const DTensor& positions) const;

  HeadOptions options_;
  std::shared_ptr<Layer> query_, key_, gate_, value_, attention_output_;
  std::shared_ptr<Layer> query_norm_, key_norm_;  ///< null: none
};

}  // namespace tessera::detail
