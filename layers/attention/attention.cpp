#include <tessera/layers/attention/attention.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/attention/attention.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/attention_heads.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/noise.hpp>
#include <tessera/layers/internal/replayed_layer.hpp>

namespace tessera {

using namespace detail;

template <class Options, class Visit>
void attention_fields(Options& o, const Visit& visit) {
  visit("use_scale", o.use_scale);
  visit("dropout", o.dropout);
  visit("seed", o.seed);
  if constexpr (requires { o.score_mode; }) visit("score_mode", o.score_mode);
  CallOption use_causal_mask{o.use_causal_mask}, scores{o.return_attention_scores};
  visit("use_causal_mask", use_causal_mask);
  visit("return_attention_scores", scores);
}

template <class Visit>
void fields(AttentionOptions& o, const Visit& visit) {
  attention_fields(o, visit);
}

template <class Visit>
void fields(AdditiveAttentionOptions& o, const Visit& visit) {
  attention_fields(o, visit);
}

namespace {

/// Implements Attention and AdditiveAttention, whose options are Attention's without score_mode.
class AttentionLayer final : public ReplayedLayer {
 public:
  AttentionLayer(bool additive, const AttentionOptions& options);
  std::string class_name() const override { return additive_ ? "AdditiveAttention" : "Attention"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  Shapes output_shapes(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  bool can_fuse(const Inputs& inputs, const CallContext& context) const;
  DTensor fused(const Inputs& inputs) const;
  DTensor scores(const DTensor& query, const DTensor& key) const;
  DTensor masked(const DTensor& scores, const DTensor& mask) const;

  bool additive_;
  AttentionOptions options_;
  Variable scale_, concat_score_weight_;
};

const RegisteredLayer registered_attention("Attention", [](JsonObject& config) {
  return Attention(layer_options_from<AttentionOptions>(config));
});
const RegisteredLayer registered_additive_attention("AdditiveAttention", [](JsonObject& config) {
  return AdditiveAttention(layer_options_from<AdditiveAttentionOptions>(config));
});

AttentionLayer::AttentionLayer(bool additive, const AttentionOptions& options)
    : ReplayedLayer(common_options(options)), additive_(additive), options_(options) {
  check_rate(str(additive ? "AdditiveAttention " : "Attention ", options.name, ", dropout"),
             options.dropout);
}

Json AttentionLayer::config() const {
  Json json = layer_config(*this, Json::object(), options_);
  if (additive_) json.erase("score_mode");
  return json;
}

Shapes AttentionLayer::output_shapes(const Shapes& inputs) const {
  const auto fail = [&](const std::string& expected, const std::string& received) {
    throw ShapeError(class_name() + " " + path(), expected, received, "correct the inputs");
  };
  if (inputs.size() != 2 && inputs.size() != 3) {
    fail("inputs are query, value and optionally key", str(inputs.size(), " inputs"));
  }
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.back();
  if (query.size() != 3 || value.size() != 3 || key.size() != 3 || query[2] != key[2] ||
      value[1] != key[1] || query[2] < 0) {
    fail(
        "query, value and key are (batch, steps, features); query and key have equal features, "
        "value and key equal steps",
        to_string(query) + ", " + to_string(value) + " and " + to_string(key));
  }
  if (scale_.defined() && additive_ && scale_.shape()[0] != query[2]) {
    fail(str("there are ", scale_.shape()[0], " features, as when built"), to_string(query));
  }
  Shapes shapes = {{query[0], query[1], value[2]}};
  if (options_.return_attention_scores) shapes.push_back({query[0], query[1], value[1]});
  return shapes;
}

void AttentionLayer::make_weights(const Shapes& inputs) {
  if (options_.use_scale && additive_) {
    scale_ = add_weight("scale", {inputs[0][2]}, "glorot_uniform");
  } else if (options_.use_scale) {
    scale_ = add_weight("scale", {}, "ones");
  }
  if (!additive_ && options_.score_mode == ScoreMode::concat) {
    concat_score_weight_ = add_weight("concat_score_weight", {}, "ones");
  }
}

/// Returns whether ops::attention can compute the call without moving sharded data.
bool AttentionLayer::can_fuse(const Inputs& inputs, const CallContext& context) const {
  if (additive_ || options_.score_mode != ScoreMode::dot || options_.return_attention_scores ||
      (context.training && options_.dropout > 0)) {
    return false;
  }
  // In float64, scores keep their differences after 1e9 is subtracted, so a fully masked step is
  // softmax(scores); ops::attention would give the values' mean.
  if (inputs[1].mask().defined() && inputs[1].dtype() == at::kDouble) return false;
  const DTensor &query = inputs[0], &value = inputs[1];
  return can_use_fused_attention(query, inputs.back(), 1) &&
         (value.layout().num_shards(1) == 1 || value.layout().axis(1) == query.layout().axis(1));
}

/// Computes the attention by ops::attention, with one head.
DTensor AttentionLayer::fused(const Inputs& inputs) const {
  const auto one_head = [](const DTensor& x) { return ops::expand_dims(x.with_mask({}), 2); };
  DTensor query = one_head(inputs[0]);
  if (scale_.defined()) query = query * read(scale_);
  DTensor mask = inputs[1].mask();
  if (mask.defined()) mask = ops::expand_dims(ops::expand_dims(mask, 1), 1);
  const DTensor y = ops::attention(query, one_head(inputs.back()), one_head(inputs[1]), mask,
                                   {.scale = 1, .causal = options_.use_causal_mask});
  return ops::squeeze(y, {2});
}

DTensor AttentionLayer::scores(const DTensor& query, const DTensor& key) const {
  if (!additive_ && options_.score_mode == ScoreMode::dot) {
    const DTensor products = ops::matmul(query, key, false, true);
    return scale_.defined() ? products * read(scale_) : products;
  }
  DTensor sums = ops::expand_dims(query, 2) + ops::expand_dims(key, 1);
  if (additive_) {
    const DTensor activated = ops::tanh(sums);
    return ops::sum(scale_.defined() ? activated * read(scale_) : activated, {-1});
  }
  if (scale_.defined()) sums = sums * read(scale_);
  return read(concat_score_weight_) * ops::sum(ops::tanh(sums), {-1});
}

DTensor AttentionLayer::masked(const DTensor& scores, const DTensor& mask) const {
  DTensor allowed;
  if (mask.defined()) allowed = ops::expand_dims(mask, 1);
  if (options_.use_causal_mask) {
    const at::Tensor ahead = at::arange(scores.size(1)).unsqueeze(-1) - at::arange(scores.size(2));
    const DTensor causal = pack(ahead.ge(0).unsqueeze(0), Layout::replicated(scores.mesh(), 3));
    allowed = allowed.defined() ? ops::logical_and(allowed, causal) : causal;
  }
  if (!allowed.defined()) return scores;
  return ops::where(allowed, scores, scores - (scores.dtype() == at::kHalf ? 65504.0 : 1e9));
}

std::vector<DTensor> AttentionLayer::call_all(const Inputs& inputs, const CallContext& context) {
  const DTensor& value = inputs[1];
  DTensor y, probabilities;
  if (can_fuse(inputs, context)) {
    y = fused(inputs);
  } else {
    probabilities = ops::softmax(masked(scores(inputs[0], inputs.back()), value.mask()), -1);
    if (context.training && options_.dropout > 0) {
      probabilities = ops::dropout(probabilities, options_.dropout,
                                   draw_seed(context, path(), probabilities.mesh(), options_.seed));
    }
    y = ops::matmul(probabilities, value);
  }
  if (const DTensor mask = inputs[0].mask(); mask.defined()) {
    y = ops::where(ops::expand_dims(mask, -1), y, scalar(0, y.mesh(), y.dtype()));
  }
  if (!options_.return_attention_scores) return {y};
  return {y, probabilities};
}

std::vector<DTensor> AttentionLayer::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  list[0] = inputs[0].mask();
  return list;
}

}  // namespace

Attention::Attention(const AttentionOptions& options)
    : LayerHandle(std::make_shared<AttentionLayer>(false, options)) {}

AdditiveAttention::AdditiveAttention(const AdditiveAttentionOptions& options)
    : LayerHandle(
          std::make_shared<AttentionLayer>(true, copied_options<AttentionOptions>(options))) {}

}  // namespace tessera
