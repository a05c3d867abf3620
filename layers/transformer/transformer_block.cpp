#include <tessera/layers/transformer/transformer_block.hpp>

#include <limits>
#include <memory>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/core/dense.hpp>
#include <tessera/layers/internal/attention_heads.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/noise.hpp>
#include <tessera/layers/internal/packed_documents.hpp>
#include <tessera/layers/normalization/normalization.hpp>
#include <tessera/layers/regularization/dropout.hpp>

namespace tessera {

using namespace detail;

namespace ops {

template <class Visit>
void fields(RotaryOptions& o, const Visit& visit) {
  visit("max_wavelength", o.max_wavelength);
  visit("interleaved", o.interleaved);
  visit("rotated", o.rotated);
  visit("scaling", o.scaling);
  visit("scaling_factor", o.scaling_factor);
  visit("original_length", o.original_length);
  visit("low_freq_factor", o.low_freq_factor);
  visit("high_freq_factor", o.high_freq_factor);
  visit("beta_fast", o.beta_fast);
  visit("beta_slow", o.beta_slow);
  visit("magnitude", o.magnitude);
}

}  // namespace ops

namespace {

/// Visited in place of rotary options, an object or None.
struct RotaryField {
  std::optional<ops::RotaryOptions>& value;
};
Json option_json(const RotaryField& field) {
  return field.value ? config_of(*field.value) : Json(nullptr);
}
void read_option(JsonObject& config, const std::string& key, RotaryField& field) {
  const auto json = config.take_optional<Json>(key);
  if (!json) return;
  JsonObject object(*json, config.path().key(key));
  field.value = options_from<ops::RotaryOptions>(object);
  object.finish();
}

/// Visited in place of a layer, a serialized one or None.
struct LayerField {
  std::optional<LayerHandle>& value;
};
Json option_json(const LayerField& field) {
  return field.value ? layer_json(*field.value->layer()) : Json(nullptr);
}
void read_option(JsonObject& config, const std::string& key, LayerField& field) {
  const auto json = config.take_optional<Json>(key);
  if (json) field.value = layer_from_config(*json, config.path().key(key));
}

}  // namespace

template <class Visit>
void fields(TransformerBlockOptions& o, const Visit& visit) {
  RotaryField rotary{o.rotary};
  LayerField feed_forward{o.feed_forward};
  visit("num_heads", o.num_heads);
  visit("hidden_dim", o.hidden_dim);
  visit("num_key_value_heads", o.num_key_value_heads);
  visit("head_dim", o.head_dim);
  visit("norm", o.norm);
  visit("norm_position", o.norm_position);
  visit("epsilon", o.epsilon);
  visit("activation", o.activation);
  visit("gated", o.gated);
  visit("use_bias", o.use_bias);
  visit("use_query_bias", o.use_query_bias);
  visit("use_output_bias", o.use_output_bias);
  visit("normalize_queries", o.normalize_queries);
  visit("rotary", rotary);
  visit("sliding_window", o.sliding_window);
  visit("attention_scale", o.attention_scale);
  visit("attention_soft_cap", o.attention_soft_cap);
  visit("use_causal_mask", o.use_causal_mask);
  visit("dropout", o.dropout);
  visit("attention_dropout", o.attention_dropout);
  visit("feed_forward", feed_forward);
  visit("kernel_initializer", o.kernel_initializer);
  visit("bias_initializer", o.bias_initializer);
  visit("seed", o.seed);
}

namespace {

/// The attention of a TransformerBlock: query and key heads that may be shared, normalized and
/// rotated.
class BlockAttentionLayer final : public HeadAttention {
 public:
  BlockAttentionLayer(const LayerOptions& common, const HeadOptions& options, int64_t heads,
                      int64_t key_heads)
      : HeadAttention(common, options),
        head_dim_(options.key_dim),
        heads_(heads),
        key_heads_(key_heads) {}
  std::string class_name() const override { return "BlockAttention"; }
  bool can_be_replayed() const override { return true; }
  Shapes output_shapes(const Shapes& inputs) const override { return {inputs[0]}; }

 protected:
  void make_weights(const Shapes& inputs) override {
    const Shape query = {heads_, head_dim_}, key = {key_heads_, head_dim_};
    add_projections(
        inputs, "",
        {.query = query, .key = key, .gate = query, .value = key, .output = {inputs[0].back()}});
  }

 private:
  DTensor repeated(const DTensor& x) const override { return repeated_heads(x, heads_); }

  int64_t head_dim_, heads_, key_heads_;
};

class TransformerBlockLayer final
    : public LayerOf<TransformerBlockLayer, TransformerBlockOptions, WrapperLayer> {
 public:
  static constexpr const char* keras_name = "TransformerBlock";
  explicit TransformerBlockLayer(const TransformerBlockOptions& options);
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  using Inner = std::shared_ptr<Layer>;

  /// Attention or feed-forward layers, with what surrounds them. Null layers are left out.
  struct Branch {
    Inner norm, norm_after, dropout;
  };
  void check_sizes() const;
  int64_t head_dim(int64_t features) const;
  Inner attention(int64_t features);
  Inner norm(const std::string& name, const Shape& shape);
  Inner dense(int64_t units, const std::string& name, const ActivationHandle& activation,
              const Shape& shape);
  void add_feed_forward(const Shape& shape);
  void add_dropout(Branch& branch, const std::string& name, const Shape& shape);
  Inputs attended(const DTensor& x, const Inputs& inputs, const CallContext& context) const;
  DTensor fed_forward(const DTensor& x, const CallContext& context) const;
  template <class Function>
  DTensor residual(const DTensor& x, const Branch& branch, const CallContext& context,
                   const Function& function) const;

  Branch first_, second_;
  Inner attention_, up_, gate_, down_, feed_forward_;
};

const RegisteredLayerOf<TransformerBlockLayer> registered_transformer_block;

TransformerBlockLayer::TransformerBlockLayer(const TransformerBlockOptions& options)
    : LayerOf(options) {
  check_sizes();
  check_rate(where() + ", dropout", options.dropout);
  check_rate(where() + ", attention_dropout", options.attention_dropout);
  for (const std::optional<double>& number :
       {options.attention_scale, options.attention_soft_cap}) {
    if (!number || *number > 0) continue;
    throw ConfigError(where(), "attention_scale and attention_soft_cap are positive", str(*number),
                      "leave it out for the default");
  }
  if (options.gated && options.feed_forward) {
    throw ConfigError(where(), "gated is an option of the dense layers", "feed_forward, too",
                      "leave out one of them");
  }
}

void TransformerBlockLayer::check_sizes() const {
  const TransformerBlockOptions& o = arguments_;
  constexpr int64_t max_size = std::numeric_limits<int32_t>::max();
  const int64_t key_heads = o.num_key_value_heads.value_or(o.num_heads);
  const int64_t hidden = o.feed_forward ? 1 : o.hidden_dim;
  for (const int64_t size :
       {o.num_heads, key_heads, hidden, o.head_dim.value_or(1), o.sliding_window.value_or(1)}) {
    if (size >= 1 && size <= max_size) continue;
    throw ConfigError(where(),
                      str("num_heads, hidden_dim, num_key_value_heads, head_dim and sliding_window "
                          "lie in [1, ",
                          max_size, "]"),
                      str(size), "give positive numbers");
  }
  if (o.num_heads % key_heads != 0) {
    throw ConfigError(where(), "num_heads is a multiple of num_key_value_heads",
                      str(o.num_heads, " and ", key_heads), "change one of them");
  }
  if (o.num_heads > max_size / o.head_dim.value_or(1)) {
    throw ConfigError(where(), str("all heads have at most ", max_size, " features"),
                      str(o.num_heads, " of ", *o.head_dim), "give smaller numbers");
  }
}

Shape TransformerBlockLayer::output_shape(const Shapes& inputs) const {
  if (inputs.empty() || inputs.size() > 2 || inputs[0].size() != 3 || inputs[0].back() < 1) {
    throw ShapeError(where(),
                     "inputs are (batch, steps, features), of known features, and optionally an "
                     "attention mask or document ids",
                     inputs.empty() ? "none" : to_string(inputs[0]), "correct the inputs");
  }
  head_dim(inputs[0].back());
  return inputs[0];
}

int64_t TransformerBlockLayer::head_dim(int64_t features) const {
  if (arguments_.head_dim) return *arguments_.head_dim;
  if (features % arguments_.num_heads == 0) return features / arguments_.num_heads;
  throw ShapeError(where(), "without head_dim, features are a multiple of num_heads",
                   str(features, " and ", arguments_.num_heads), "set head_dim");
}

TransformerBlockLayer::Inner TransformerBlockLayer::attention(int64_t features) {
  const TransformerBlockOptions& o = arguments_;
  HeadOptions options{.key_dim = head_dim(features),
                      .dropout = o.attention_dropout,
                      .window = o.sliding_window,
                      .seed = o.seed,
                      .causal = o.use_causal_mask,
                      .scores = false,
                      .use_bias = o.use_query_bias.value_or(o.use_bias),
                      .use_gate = false,
                      .axes = {},
                      .projection = {.kernel_initializer = o.kernel_initializer,
                                     .bias_initializer = o.bias_initializer},
                      .use_output_bias = o.use_output_bias.value_or(o.use_bias),
                      .scale = o.attention_scale,
                      .soft_cap = o.attention_soft_cap};
  options.rotary = o.rotary;
  if (options.rotary) options.rotary->axis = -3;
  if (o.normalize_queries) options.norm_epsilon = o.epsilon;
  options.norm_unit_offset = o.norm == BlockNorm::rms_unit_offset;
  return add_inner(
      "attention",
      make_layer<BlockAttentionLayer>(
          LayerOptions{.name = "attention", .dtype = o.dtype, .trainable = trainable()}, options,
          o.num_heads, o.num_key_value_heads.value_or(o.num_heads)));
}

TransformerBlockLayer::Inner TransformerBlockLayer::norm(const std::string& name,
                                                         const Shape& shape) {
  const bool rms = arguments_.norm != BlockNorm::layer;
  const double epsilon = arguments_.epsilon;
  const std::string& dtype = arguments_.dtype;
  const LayerHandle layer =
      rms ? LayerHandle(
                RMSNormalization({.epsilon = epsilon,
                                  .add_unit_offset = arguments_.norm == BlockNorm::rms_unit_offset,
                                  .name = name,
                                  .dtype = dtype,
                                  .trainable = trainable()}))
          : LayerHandle(LayerNormalization(
                {.epsilon = epsilon, .name = name, .dtype = dtype, .trainable = trainable()}));
  layer->build({shape});
  return add_inner(name, layer);
}

TransformerBlockLayer::Inner TransformerBlockLayer::dense(int64_t units, const std::string& name,
                                                          const ActivationHandle& activation,
                                                          const Shape& shape) {
  const TransformerBlockOptions& o = arguments_;
  const Inner layer = add_inner(name, Dense(units, {.activation = activation,
                                                    .use_bias = o.use_bias,
                                                    .kernel_initializer = o.kernel_initializer,
                                                    .bias_initializer = o.bias_initializer,
                                                    .name = name,
                                                    .dtype = o.dtype,
                                                    .trainable = trainable()}));
  layer->build({shape});
  return layer;
}

void TransformerBlockLayer::add_feed_forward(const Shape& shape) {
  const TransformerBlockOptions& o = arguments_;
  if (o.feed_forward) {
    feed_forward_ = add_inner("feed_forward", *o.feed_forward);
    feed_forward_->build({shape});
    return;
  }
  if (o.gated) gate_ = dense(o.hidden_dim, "gate", o.activation, shape);
  up_ = dense(o.hidden_dim, "up", o.gated ? ActivationHandle() : o.activation, shape);
  Shape hidden = shape;
  hidden.back() = o.hidden_dim;
  down_ = dense(shape.back(), "down", {}, hidden);
}

void TransformerBlockLayer::add_dropout(Branch& branch, const std::string& name,
                                        const Shape& shape) {
  const TransformerBlockOptions& o = arguments_;
  branch.dropout =
      add_inner(name, Dropout(o.dropout, {.seed = o.seed, .name = name, .dtype = o.dtype}));
  branch.dropout->build({shape});
}

/// Makes the layers in the order in which they are called, which is that of the weights.
void TransformerBlockLayer::make_weights(const Shapes& inputs) {
  const Shape& x = inputs[0];
  const bool before = arguments_.norm_position != NormPosition::post;
  const bool both = arguments_.norm_position == NormPosition::both;
  if (before) first_.norm = norm("norm_1", x);
  attention_ = attention(x.back());
  attention_->build({x, x});
  if (both) first_.norm_after = norm("norm_1_after", x);
  add_dropout(first_, "dropout_1", x);
  first_.norm = before ? first_.norm : norm("norm_1", x);
  if (before) second_.norm = norm("norm_2", x);
  add_feed_forward(x);
  if (both) second_.norm_after = norm("norm_2_after", x);
  add_dropout(second_, "dropout_2", x);
  if (!before) second_.norm = norm("norm_2", x);
}

DTensor TransformerBlockLayer::fed_forward(const DTensor& x, const CallContext& context) const {
  if (feed_forward_) return (*feed_forward_)(x, context);
  if (!gate_) return (*down_)((*up_)(x, context), context);
  const DTensor gate = (*gate_)(x, context);
  return (*down_)(gate * (*up_)(x, context), context);
}

/// Normalizes x, and passes on its mask, which RMSNormalization does not.
DTensor masked_norm(Layer& norm, const DTensor& x, const CallContext& context) {
  const DTensor mask = x.mask();
  if (!mask.defined()) return norm(x, context);
  return norm(x.with_mask({}), context).with_mask(mask);
}

/// Returns the sum of x and `function`, with the norms of the branch around it.
template <class Function>
DTensor TransformerBlockLayer::residual(const DTensor& x, const Branch& branch,
                                        const CallContext& context,
                                        const Function& function) const {
  const bool before = arguments_.norm_position != NormPosition::post;
  DTensor y = function(before ? masked_norm(*branch.norm, x, context) : x);
  if (branch.norm_after) y = masked_norm(*branch.norm_after, y, context);
  y = (*branch.dropout)(y, context);
  y = (x + y).with_mask(x.mask());
  return before ? y : masked_norm(*branch.norm, y, context);
}

/// Returns the inputs of the attention to x: query, value, and what the second input says.
Inputs TransformerBlockLayer::attended(const DTensor& x, const Inputs& inputs,
                                       const CallContext& context) const {
  if (inputs.size() == 1) return {x, x};
  if (inputs[1].rank() != 2) return {x, x, x, inputs[1]};
  const DTensor& documents = inputs[1];
  check_documents(where(), documents, x.size(0), x.size(1));
  if (context.cache) {
    throw ConfigError(where(), "with a key-value cache, a row holds one document", "document ids",
                      "leave them out, or call the layer without a cache");
  }
  Inputs all = {x, x, x, document_mask(documents)};
  if (arguments_.rotary) all.push_back(document_positions(documents));
  return all;
}

DTensor TransformerBlockLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor y = residual(inputs[0], first_, context, [&](const DTensor& x) {
    return (*attention_)(attended(x, inputs, context), context);
  });
  return residual(y, second_, context, [&](const DTensor& x) { return fed_forward(x, context); });
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerBlockOptions& options)
    : LayerHandle(make_layer<TransformerBlockLayer>(options)) {}

}  // namespace tessera
