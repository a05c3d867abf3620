#include <tessera/layers/attention/group_query_attention.hpp>

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
void fields(GroupQueryAttentionOptions& o, const Visit& visit) {
  visit("use_bias", o.use_bias);
  visit("use_gate", o.use_gate);
  visit("sliding_window", o.sliding_window);
  visit("dropout", o.dropout);
  kernel_fields(o, visit);
  visit("seed", o.seed);
  visit("use_causal_mask", o.use_causal_mask);
  visit("return_attention_scores", o.return_attention_scores);
}

namespace {

class GroupQueryAttentionLayer final : public WrapperLayer {
 public:
  GroupQueryAttentionLayer(int64_t head_dim, int64_t num_query_heads, int64_t num_key_value_heads,
                           const GroupQueryAttentionOptions& options);
  std::string class_name() const override { return "GroupQueryAttention"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  LayerHandle projection(const std::string& name, int64_t heads) const;
  DTensor repeated(const DTensor& x) const;
  DTensor with_dropout(const DTensor& scores, const CallContext& context) const;

  int64_t head_dim_, num_query_heads_, num_key_value_heads_;
  GroupQueryAttentionOptions options_;
  std::shared_ptr<Layer> query_, key_, gate_, value_, attention_output_;
};

const RegisteredLayer registered_group_query_attention(
    "GroupQueryAttention", [](JsonObject& config) {
      const auto options = layer_options_from<GroupQueryAttentionOptions>(config);
      take_nulls(config, {"flash_attention"});
      const int64_t head_dim = take_extent(config, "head_dim");
      const int64_t heads = take_extent(config, "num_query_heads");
      return GroupQueryAttention(head_dim, heads, take_extent(config, "num_key_value_heads"),
                                 options);
    });

GroupQueryAttentionLayer::GroupQueryAttentionLayer(int64_t head_dim, int64_t num_query_heads,
                                                   int64_t num_key_value_heads,
                                                   const GroupQueryAttentionOptions& options)
    : WrapperLayer(common_options(options)),
      head_dim_(head_dim),
      num_query_heads_(num_query_heads),
      num_key_value_heads_(num_key_value_heads),
      options_(options) {
  const std::string where = "GroupQueryAttention " + options.name;
  const int64_t window = options.sliding_window.value_or(1);
  for (const int64_t size : {head_dim, num_query_heads, num_key_value_heads, window}) {
    if (size > 0) continue;
    throw ConfigError(where, "head_dim, numbers of heads and sliding_window are at least 1",
                      str(size), "give positive numbers");
  }
  if (num_query_heads % num_key_value_heads != 0) {
    throw ConfigError(where, "num_query_heads is a multiple of num_key_value_heads",
                      str(num_query_heads, " and ", num_key_value_heads), "change one of them");
  }
  constexpr int64_t max_features = std::numeric_limits<int32_t>::max();
  if (num_query_heads > max_features / head_dim) {
    throw ConfigError(where, str("all heads have at most ", max_features, " features"),
                      str(num_query_heads, " of ", head_dim), "give smaller numbers");
  }
  check_rate(where + ", dropout", options.dropout);
}

Json GroupQueryAttentionLayer::config() const {
  Json json = layer_config(*this,
                           {{"head_dim", head_dim_},
                            {"num_query_heads", num_query_heads_},
                            {"num_key_value_heads", num_key_value_heads_}},
                           options_);
  erase_if_false(json, {"use_causal_mask", "return_attention_scores"});
  return json;
}

Shapes GroupQueryAttentionLayer::output_shapes(const Shapes& inputs) const {
  const auto fail = [&](const std::string& expected, const std::string& received) {
    throw ShapeError("GroupQueryAttention " + path(), expected, received, "correct the inputs");
  };
  if (inputs.size() < 2 || inputs.size() > 4) {
    fail("inputs are query and value, then optionally key and attention_mask",
         str(inputs.size(), " inputs"));
  }
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.size() > 2 ? inputs[2] : value;
  const bool shapes_match = query.size() == 3 && value.size() == 3 && key.size() == 3 &&
                            query[2] == value[2] && value[1] == key[1];
  if (!shapes_match) {
    fail(
        "query, value and key are (batch, steps, features); query and value have equal features, "
        "value and key equal steps",
        to_string(query) + ", " + to_string(value) + " and " + to_string(key));
  }
  for (const Shape& shape : {query, key}) {
    if (shape[2] < 0) fail("features have a known extent", to_string(shape));
  }
  if (!options_.return_attention_scores) return {query};
  return {query, {query[0], num_query_heads_, query[1], value[1]}};
}

/// Makes the projection of (batch, steps, features) to heads.
LayerHandle GroupQueryAttentionLayer::projection(const std::string& name, int64_t heads) const {
  return head_projection(options_, name, 3, 1, {heads, head_dim_}, to_string(dtype_policy()));
}

void GroupQueryAttentionLayer::make_weights(const Shapes& inputs) {
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.size() > 2 ? inputs[2] : value;
  query_ = add_inner("_query_dense", projection("query", num_query_heads_));
  key_ = add_inner("_key_dense", projection("key", num_key_value_heads_));
  if (options_.use_gate) gate_ = add_inner("_gate_dense", projection("gate", num_query_heads_));
  value_ = add_inner("_value_dense", projection("value", num_key_value_heads_));
  attention_output_ = add_inner(
      "_output_dense",
      head_projection(options_, "attention_output", 4, 2, {query[2]}, to_string(dtype_policy())));
  query_->build({query});
  key_->build({key});
  if (gate_) gate_->build({query});
  value_->build({value});
  attention_output_->build({{query[0], query[1], num_query_heads_, head_dim_}});
}

/// Repeats each key or value head for the query heads that share it.
DTensor GroupQueryAttentionLayer::repeated(const DTensor& x) const {
  if (num_query_heads_ == num_key_value_heads_) return x;
  const int64_t group = num_query_heads_ / num_key_value_heads_;
  const DTensor expanded = ops::broadcast_to(
      ops::expand_dims(x, 3), {x.size(0), x.size(1), num_key_value_heads_, group, head_dim_});
  return ops::reshape(expanded, {x.size(0), x.size(1), num_query_heads_, head_dim_});
}

DTensor GroupQueryAttentionLayer::with_dropout(const DTensor& scores,
                                               const CallContext& context) const {
  if (!context.training || options_.dropout == 0) return scores;
  return ops::dropout(scores, options_.dropout,
                      draw_seed(context, path(), scores.mesh(), options_.seed));
}

std::vector<DTensor> GroupQueryAttentionLayer::call_all(const Inputs& inputs,
                                                        const CallContext& context) {
  const DTensor x = inputs[0].with_mask({}), value = inputs[1].with_mask({});
  const DTensor key = inputs.size() > 2 ? inputs[2].with_mask({}) : value;
  const DTensor q = (*query_)(x, context);
  const DTensor k = (*key_)(key, context);
  const AttendedSteps attended = attended_steps(
      *this, context, inputs, k, (*value_)(value, context),
      {options_.use_causal_mask, options_.return_attention_scores, options_.sliding_window});
  const bool drops = context.training && options_.dropout > 0;
  std::vector<DTensor> masks = attended.masks;
  DTensor heads, probabilities;
  if (!options_.return_attention_scores && !drops && can_use_fused_attention(q, attended.key, 1)) {
    for (DTensor& mask : masks) mask = expanded_mask(mask, 2, 4);
    heads = ops::attention(
        q, attended.key, attended.value, {},
        {.causal = attended.causal, .zeros = true, .window = attended.window, .masks = masks});
  } else {
    masks.push_back(
        position_mask(x.size(1), attended.key.size(1), attended.causal, attended.window, x.mesh()));
    const DTensor scores =
        ops::einsum("bkuh,bquh->buqk", {repeated(attended.key), q / std::sqrt(double(head_dim_))});
    probabilities = masked_softmax(scores, masks, 1);
    heads = ops::einsum("buqk,bkuh->bquh",
                        {with_dropout(probabilities, context), repeated(attended.value)});
  }
  if (gate_) heads = heads * (*gate_)(x, context);
  std::vector<DTensor> outputs = {(*attention_output_)(heads, context)};
  if (options_.return_attention_scores) outputs.push_back(probabilities);
  // Keras applies activity_regularizer to the layer's outputs too.
  for (const DTensor& output : outputs) penalize(options_.activity_regularizer, output);
  return outputs;
}

std::vector<DTensor> GroupQueryAttentionLayer::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  list[0] = inputs[0].mask();
  return list;
}

}  // namespace

GroupQueryAttention::GroupQueryAttention(int64_t head_dim, int64_t num_query_heads,
                                         int64_t num_key_value_heads,
                                         const GroupQueryAttentionOptions& options)
    : LayerHandle(std::make_shared<GroupQueryAttentionLayer>(head_dim, num_query_heads,
                                                             num_key_value_heads, options)) {}

}  // namespace tessera
