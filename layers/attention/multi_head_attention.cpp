#include <tessera/layers/attention/multi_head_attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/attention/attention.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/attention_heads.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>
#include <tessera/layers/internal/wrapper.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MultiHeadAttentionOptions& o, const Visit& visit) {
  visit("value_dim", o.value_dim);
  visit("dropout", o.dropout);
  visit("use_bias", o.use_bias);
  visit("use_gate", o.use_gate);
  visit("output_shape", o.output_shape);
  visit("attention_axes", o.attention_axes);
  visit("sliding_window", o.sliding_window);
  visit("seed", o.seed);
  kernel_fields(o, visit);
  visit("use_causal_mask", o.use_causal_mask);
  visit("return_attention_scores", o.return_attention_scores);
}

namespace {

class MultiHeadAttentionLayer final : public WrapperLayer {
 public:
  MultiHeadAttentionLayer(int64_t num_heads, int64_t key_dim,
                          const MultiHeadAttentionOptions& options);
  std::string class_name() const override { return "MultiHeadAttention"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  /// Einsum terms of queries, keys and their scores.
  struct EinsumTerms {
    std::string query, key, scores;
  };
  std::vector<int64_t> axes(int64_t rank) const;
  EinsumTerms einsum_terms(int64_t rank) const;
  LayerHandle projection(const std::string& name, int64_t rank, int64_t bound,
                         const Shape& output) const;
  void check_order(const std::vector<int64_t>& attended) const;
  std::vector<DTensor> masks_by_axes(const Inputs& inputs) const;
  bool can_fuse(const DTensor& q, const DTensor& k, const CallContext& context) const;
  DTensor fused(const DTensor& q, const AttendedSteps& attended) const;
  DTensor with_dropout(const DTensor& scores, const CallContext& context) const;

  int64_t num_heads_, key_dim_, value_dim_;
  MultiHeadAttentionOptions options_;
  std::shared_ptr<Layer> query_, key_, gate_, value_, attention_output_;
};

const RegisteredLayer registered_multi_head_attention("MultiHeadAttention", [](JsonObject& config) {
  const auto options = layer_options_from<MultiHeadAttentionOptions>(config);
  take_nulls(config, {"flash_attention"});
  const int64_t num_heads = take_extent(config, "num_heads");
  return MultiHeadAttention(num_heads, take_extent(config, "key_dim"), options);
});

MultiHeadAttentionLayer::MultiHeadAttentionLayer(int64_t num_heads, int64_t key_dim,
                                                 const MultiHeadAttentionOptions& options)
    : WrapperLayer(common_options(options)),
      num_heads_(num_heads),
      key_dim_(key_dim),
      value_dim_(options.value_dim.value_or(key_dim)),
      options_(options) {
  options_.value_dim = value_dim_;
  const std::string where = "MultiHeadAttention " + options.name;
  const int64_t window = options.sliding_window.value_or(1);
  for (const int64_t size : {num_heads, key_dim, value_dim_, window}) {
    if (size > 0) continue;
    throw ConfigError(where, "num_heads, key_dim, value_dim and sliding_window are at least 1",
                      str(size), "give positive numbers");
  }
  constexpr int64_t max_features = std::numeric_limits<int32_t>::max();
  if (num_heads > max_features / std::max(key_dim, value_dim_)) {
    throw ConfigError(where, str("all heads have at most ", max_features, " features"),
                      str(num_heads, " of ", key_dim, " and ", value_dim_), "give smaller numbers");
  }
  check_rate(where + ", dropout", options.dropout);
}

Json MultiHeadAttentionLayer::config() const {
  Json json = layer_config(*this, {{"num_heads", num_heads_}, {"key_dim", key_dim_}}, options_);
  erase_if_false(json, {"use_causal_mask", "return_attention_scores"});
  return json;
}

/// Returns the axes that are attended over.
std::vector<int64_t> MultiHeadAttentionLayer::axes(int64_t rank) const {
  std::vector<int64_t> list;
  const std::string where = "MultiHeadAttention " + path();
  for (const int64_t axis : options_.attention_axes) {
    const int64_t a = normalize_axis(axis, rank, where);
    if (a > 0 && a + 1 < rank && std::find(list.begin(), list.end(), a) == list.end()) {
      list.push_back(a);
      continue;
    }
    throw ShapeError(where, "attention_axes names axes between batch and features, each once",
                     to_string(options_.attention_axes), "leave it out to attend over all of them");
  }
  for (int64_t a = 1; options_.attention_axes.empty() && a + 1 < rank; ++a) list.push_back(a);
  return list;
}

/// Checks that a causal mask and a window know the order of the steps.
void MultiHeadAttentionLayer::check_order(const std::vector<int64_t>& attended) const {
  if (attended.size() == 1 || !(options_.use_causal_mask || options_.sliding_window)) return;
  throw ConfigError("MultiHeadAttention " + path(),
                    "use_causal_mask and sliding_window order the steps of one attended axis",
                    "the axes " + to_string(attended), "name one of them in attention_axes");
}

MultiHeadAttentionLayer::EinsumTerms MultiHeadAttentionLayer::einsum_terms(int64_t rank) const {
  const std::vector<int64_t> attended = axes(rank);
  EinsumTerms terms;
  terms.query = terms.key = letters_from(0, rank + 1);
  for (size_t i = 0; i < attended.size(); ++i) {
    terms.key[static_cast<size_t>(attended[i])] =
        static_cast<char>('a' + rank + 1 + static_cast<int64_t>(i));
  }
  const auto is_attended = [&](int64_t axis) {
    return std::find(attended.begin(), attended.end(), axis) != attended.end();
  };
  for (int64_t a = 0; a < rank; ++a) {
    if (!is_attended(a)) terms.scores += terms.query[static_cast<size_t>(a)];
  }
  for (const std::string& term : {terms.query, terms.key}) {
    for (const int64_t axis : attended) terms.scores += term[static_cast<size_t>(axis)];
  }
  return terms;
}

Shapes MultiHeadAttentionLayer::output_shapes(const Shapes& inputs) const {
  const auto fail = [&](const std::string& expected, const std::string& received) {
    throw ShapeError("MultiHeadAttention " + path(), expected, received, "correct the inputs");
  };
  if (inputs.size() < 2 || inputs.size() > 4) {
    fail("inputs are query and value, then optionally key and attention_mask",
         str(inputs.size(), " inputs"));
  }
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.size() > 2 ? inputs[2] : value;
  const bool shapes_match = value.size() == query.size() && key.size() == value.size() &&
                            query.size() > 2 &&
                            std::equal(value.begin() + 1, value.end() - 1, key.begin() + 1);
  if (!shapes_match) {
    fail("query, value and key have axes batch, steps and features; value and key have equal steps",
         to_string(query) + ", " + to_string(value) + " and " + to_string(key));
  }
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
    if (inputs[i].back() < 0) fail("features have a known extent", to_string(inputs[i]));
  }
  const std::vector<int64_t> attended = axes(static_cast<int64_t>(query.size()));
  check_order(attended);
  Shape output = query;
  if (!options_.output_shape.empty()) {
    output.pop_back();
    output.insert(output.end(), options_.output_shape.begin(), options_.output_shape.end());
  }
  if (!options_.return_attention_scores) return {output};
  const EinsumTerms terms = einsum_terms(static_cast<int64_t>(query.size()));
  Shape scores;
  for (const char letter : terms.scores) {
    const size_t in_query = terms.query.find(letter), in_key = terms.key.find(letter);
    const bool heads = in_query == query.size() - 1;
    scores.push_back(heads                           ? num_heads_
                     : in_query != std::string::npos ? query[in_query]
                                                     : value[in_key]);
  }
  return {output, scores};
}

/// Makes the projection (free…, bound…) · (bound…, output…), with `bound` summed axes.
LayerHandle MultiHeadAttentionLayer::projection(const std::string& name, int64_t rank,
                                                int64_t bound, const Shape& output) const {
  return head_projection(options_, name, rank, bound, output, to_string(dtype_policy()));
}

void MultiHeadAttentionLayer::make_weights(const Shapes& inputs) {
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.size() > 2 ? inputs[2] : value;
  const auto rank = static_cast<int64_t>(query.size());
  Shape heads = query;
  heads.back() = num_heads_;
  heads.push_back(value_dim_);
  const Shape output = options_.output_shape.empty() ? Shape{query.back()} : options_.output_shape;
  query_ = add_inner("query_dense", projection("query", rank, 1, {num_heads_, key_dim_}));
  key_ = add_inner("key_dense", projection("key", rank, 1, {num_heads_, key_dim_}));
  if (options_.use_gate) {
    gate_ = add_inner("_gate_dense", projection("gate", rank, 1, {num_heads_, value_dim_}));
  }
  value_ = add_inner("value_dense", projection("value", rank, 1, {num_heads_, value_dim_}));
  attention_output_ =
      add_inner("output_dense", projection("attention_output", rank + 1, 2, output));
  query_->build({query});
  key_->build({key});
  if (gate_) gate_->build({query});
  value_->build({value});
  attention_output_->build({heads});
}

/// Returns call_masks() of inputs with more axes than (batch, steps, features), whose masks may
/// have all axes but the features.
std::vector<DTensor> MultiHeadAttentionLayer::masks_by_axes(const Inputs& inputs) const {
  const EinsumTerms terms = einsum_terms(inputs[0].rank());
  return call_masks(inputs, [&terms](size_t input, const DTensor& mask) {
    const std::string letters =
        (input == 0 ? terms.query : terms.key).substr(0, size_t(mask.rank()));
    std::vector<int64_t> order;
    Shape shape;
    for (const char letter : terms.scores) {
      const size_t axis = letters.find(letter);
      if (axis != std::string::npos) order.push_back(static_cast<int64_t>(axis));
      shape.push_back(axis == std::string::npos ? 1 : mask.size(order.back()));
    }
    return ops::reshape(ops::transpose(mask, order), shape);
  });
}

/// Returns whether ops::attention, which exposes no scores, can compute the call without moving
/// sharded data.
bool MultiHeadAttentionLayer::can_fuse(const DTensor& q, const DTensor& k,
                                       const CallContext& context) const {
  if (options_.return_attention_scores || (context.training && options_.dropout > 0)) return false;
  const std::vector<int64_t> attended = axes(q.rank() - 1);
  return attended.size() == 1 && can_use_fused_attention(q, k, attended[0]);
}

DTensor MultiHeadAttentionLayer::fused(const DTensor& q, const AttendedSteps& attended) const {
  // All axes but the attended one act as batch axes.
  const int64_t axis = axes(q.rank() - 1)[0], steps = q.rank() - 3;
  const auto moved = [&](const DTensor& x, int64_t from, int64_t to) {
    if (from == to) return x;
    std::vector<int64_t> order;
    for (int64_t a = 0; a < x.rank(); ++a) {
      if (a != from) order.push_back(a);
    }
    order.insert(order.begin() + to, from);
    return ops::transpose(x, order);
  };
  ops::SdpaOptions options{
      .causal = attended.causal, .zeros = true, .window = attended.window, .masks = attended.masks};
  for (DTensor& mask : options.masks) mask = expanded_mask(mask, 2, q.rank());
  const DTensor y = ops::attention(moved(q, axis, steps), moved(attended.key, axis, steps),
                                   moved(attended.value, axis, steps), {}, options);
  return moved(y, steps, axis);
}

DTensor MultiHeadAttentionLayer::with_dropout(const DTensor& scores,
                                              const CallContext& context) const {
  if (!context.training || options_.dropout == 0) return scores;
  return ops::dropout(scores, options_.dropout,
                      draw_seed(context, path(), scores.mesh(), options_.seed));
}

std::vector<DTensor> MultiHeadAttentionLayer::call_all(const Inputs& inputs,
                                                       const CallContext& context) {
  const DTensor x = inputs[0].with_mask({}), value = inputs[1].with_mask({});
  const DTensor key = inputs.size() > 2 ? inputs[2].with_mask({}) : value;
  const DTensor q = (*query_)(x, context);
  const DTensor k = (*key_)(key, context);
  AttendedSteps attended = attended_steps(
      *this, context, inputs, k, (*value_)(value, context),
      {options_.use_causal_mask, options_.return_attention_scores, options_.sliding_window});
  if (x.rank() > 3) attended.masks = masks_by_axes(inputs);
  DTensor heads, probabilities;
  if (can_fuse(q, attended.key, context)) {
    heads = fused(q, attended);
  } else {
    const EinsumTerms terms = einsum_terms(x.rank());
    const DTensor scores = ops::einsum(terms.key + "," + terms.query + "->" + terms.scores,
                                       {attended.key, q / std::sqrt(double(key_dim_))});
    const std::vector<int64_t> over = axes(x.rank());
    std::vector<DTensor> masks = attended.masks;
    masks.push_back(position_mask(x.size(over[0]), attended.key.size(over[0]), attended.causal,
                                  attended.window, x.mesh()));
    probabilities = masked_softmax(scores, masks, std::ssize(over));
    heads = ops::einsum(terms.scores + "," + terms.key + "->" + terms.query,
                        {with_dropout(probabilities, context), attended.value});
  }
  if (gate_) heads = heads * (*gate_)(x, context);
  std::vector<DTensor> outputs = {(*attention_output_)(heads, context)};
  if (options_.return_attention_scores) outputs.push_back(probabilities);
  return outputs;
}

std::vector<DTensor> MultiHeadAttentionLayer::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  list[0] = inputs[0].mask();
  return list;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                       const MultiHeadAttentionOptions& options)
    : LayerHandle(std::make_shared<MultiHeadAttentionLayer>(num_heads, key_dim, options)) {}

}  // namespace tessera
