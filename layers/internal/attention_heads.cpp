#include <tessera/layers/internal/attention_heads.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/key_value_cache.hpp>
#include <tessera/framework/ops/attention/attention.hpp>
#include <tessera/framework/ops/attention/cached_attention.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise.hpp>
#include <tessera/layers/normalization/normalization.hpp>

namespace tessera::detail {

namespace {

/// Returns `count` einsum letters, from number `first` on ("abc" for 0, 3).
std::string letters_from(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + first + i);
  return text;
}

/// Inserts axes of extent 1 before the last `trailing` axes of a mask, up to a rank.
DTensor expanded_mask(const DTensor& mask, int64_t trailing, int64_t rank) {
  Shape shape = mask.shape();
  const auto missing = std::max<int64_t>(rank - mask.rank(), 0);
  shape.insert(shape.end() - std::min(trailing, mask.rank()), static_cast<size_t>(missing), 1);
  return ops::reshape(mask, shape);
}

/// Places the mask of a query (batch, T) or of a key or value (batch, S) for (batch, T, S).
DTensor placed_mask(size_t input, const DTensor& mask) {
  return ops::expand_dims(mask, input == 0 ? -1 : -2);
}

/// Returns the axes of an input's own mask as axes of the scores, with extent 1 along the others.
using MaskPlacer = std::function<DTensor(size_t input, const DTensor& mask)>;

/// Returns the masks of a call on query, value, optionally key and attention_mask: bool, those of
/// the inputs placed by `place`.
std::vector<DTensor> masks_of(const Inputs& inputs, const MaskPlacer& place) {
  std::vector<DTensor> masks;
  if (inputs.size() > 3) {
    const DTensor& attention_mask = inputs[3];
    masks.push_back(attention_mask.dtype() == at::kBool ? attention_mask
                                                        : ops::cast(attention_mask, at::kBool));
  }
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
    const DTensor mask = inputs[i].mask();
    if (mask.defined()) masks.push_back(place(i, mask));
  }
  return masks;
}

/// Returns the causal and window mask of T query steps over S key steps, bool (1, T, S); undefined
/// if it excludes nothing.
DTensor position_mask(int64_t t, int64_t s, bool causal, const std::optional<int64_t>& window,
                      const Mesh& mesh) {
  if (!window && (!causal || s <= 1)) return {};
  const at::Tensor ahead = at::arange(t).unsqueeze(-1) - at::arange(s);
  at::Tensor near = at::ones_like(ahead, at::kBool);
  if (causal) near = near.logical_and(ahead.ge(0));
  if (window) near = near.logical_and(ahead.abs().lt(*window));
  return pack(near.unsqueeze(0), Layout::replicated(mesh, 3));
}

/// Returns the causal and window mask of steps at these positions, (batch, T), over the steps of a
/// cache, bool (batch, T, capacity).
DTensor cache_mask(const DTensor& positions, int64_t capacity,
                   const std::optional<int64_t>& window) {
  const Mesh& mesh = positions.mesh();
  const DTensor keys =
      pack(at::arange(capacity).reshape({1, 1, capacity}), Layout::replicated(mesh, 3));
  const DTensor ahead = ops::expand_dims(positions, -1) - keys;
  const DTensor causal = ops::greater_equal(ahead, 0);
  return window ? ops::logical_and(causal, ops::less(ahead, *window)) : causal;
}

/// The keys, values and masks that the steps of a call attend to.
struct AttendedSteps {
  DTensor key, value;
  std::vector<DTensor> masks = {};  ///< each broadcastable to (batch, T, S)
  bool causal = false;  ///< whether to apply a causal mask: query and key have the same steps
  std::optional<int64_t> window = {};
  /// The positions of the query's steps, if key and value are a cache's; `first` is undefined if
  /// they are the call's own.
  CachedSteps cached = {};
};

/// Writes the projected keys and values of a call, and the masks of its inputs, into the context's
/// cache, and returns what the steps attend to there.
AttendedSteps cached_steps(const Layer& layer, const CallContext& context, const Inputs& inputs,
                           const DTensor& key, const DTensor& value, const CachedSteps& steps) {
  KeyValueCache& cache = *context.cache;
  AttendedSteps all{.key = cache.written(layer, "key", key, steps),
                    .value = cache.written(layer, "value", value, steps),
                    .cached = steps};
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
    DTensor mask = inputs[i].mask();
    if (i == 0) {
      if (mask.defined()) all.masks.push_back(placed_mask(i, mask));
      continue;
    }
    const std::string name = str("mask_", i);
    if (!mask.defined() && !cache.has(layer, name)) continue;
    if (!mask.defined()) mask = filled({key.size(0), key.size(1)}, 1, at::kBool);
    all.masks.push_back(placed_mask(i, cache.written(layer, name, mask, steps)));
  }
  return all;
}

/// Throws ConfigError for a call that cannot use a cache: keys other than (batch, steps, features),
/// scores that are returned, and an attention mask.
void check_cached_call(const Layer& layer, const Inputs& inputs, bool scores) {
  const bool steps = inputs[0].rank() == 3;
  if (steps && !scores && inputs.size() < 4) return;
  throw ConfigError(layer.class_name() + " " + layer.path(),
                    "with a key-value cache, inputs are (batch, steps, features) without an "
                    "attention mask, and no scores are returned",
                    scores  ? "return_attention_scores"
                    : steps ? "an attention mask"
                            : str("rank ", inputs[0].rank()),
                    "call the model without one");
}

/// Returns the logical and of masks, each expanded to the axes of scores; undefined without any.
DTensor combined_mask(const std::vector<DTensor>& masks, int64_t attended, int64_t rank) {
  DTensor all;
  for (const DTensor& mask : masks) {
    if (!mask.defined()) continue;
    const DTensor one = expanded_mask(mask, 2 * attended, rank);
    all = all.defined() ? ops::logical_and(all, one) : one;
  }
  return all;
}

/// Returns the softmax of scores over their last `attended` axes, computed in at least float32,
/// where all of the masks that are defined allow it. Steps with everything masked give zeros.
DTensor masked_softmax(const DTensor& scores, const std::vector<DTensor>& masks, int64_t attended) {
  // Sums in float16 and bfloat16 are too imprecise.
  const at::ScalarType dtype = c10::promoteTypes(scores.dtype(), at::kFloat);
  DTensor logits = ops::cast(scores, dtype);
  const DTensor keep = combined_mask(masks, attended, scores.rank());
  if (keep.defined()) {
    constexpr double lowest = -std::numeric_limits<float>::max() / 2;
    logits = ops::where(keep, logits, scalar(lowest, scores.mesh(), dtype));
  }
  DTensor y = ops::reshape(ops::softmax(ops::flatten(logits, logits.rank() - attended), -1),
                           logits.shape());
  if (keep.defined()) y = ops::where(keep, y, scalar(0, y.mesh(), dtype));
  return ops::cast(y, scores.dtype());
}

/// Computes the heads by ops::attention, over `axis`.
DTensor fused_heads(const DTensor& q, const AttendedSteps& attended, int64_t axis,
                    const std::optional<double>& scale) {
  if (attended.cached.first.defined()) {
    ops::CachedAttentionOptions options{
        .scale = scale, .window = attended.window, .masks = attended.masks};
    for (DTensor& mask : options.masks) mask = expanded_mask(mask, 2, q.rank());
    return ops::cached_attention(q, attended.key, attended.value, attended.cached.first, options);
  }
  // All axes but the attended one act as batch axes.
  const int64_t steps = q.rank() - 3;
  const auto moved = [&](const DTensor& x, int64_t from, int64_t to) {
    if (from == to) return x;
    std::vector<int64_t> order;
    for (int64_t a = 0; a < x.rank(); ++a) {
      if (a != from) order.push_back(a);
    }
    order.insert(order.begin() + to, from);
    return ops::transpose(x, order);
  };
  ops::SdpaOptions options{.scale = scale,
                           .causal = attended.causal,
                           .zeros = true,
                           .window = attended.window,
                           .masks = attended.masks};
  for (DTensor& mask : options.masks) mask = expanded_mask(mask, 2, q.rank());
  const DTensor y = ops::attention(moved(q, axis, steps), moved(attended.key, axis, steps),
                                   moved(attended.value, axis, steps), {}, options);
  return moved(y, steps, axis);
}

}  // namespace

bool can_use_fused_attention(const DTensor& query, const DTensor& key, int64_t steps) {
  const auto unsharded = [](const DTensor& x, int64_t axis) {
    return x.layout().num_shards(axis) == 1;
  };
  // Keys sharded like the query's steps would be gathered for scores too.
  return unsharded(query, query.rank() - 1) && unsharded(key, key.rank() - 1) &&
         (unsharded(key, steps) || key.layout().axis(steps) == query.layout().axis(steps));
}

DTensor repeated_heads(const DTensor& x, int64_t query_heads) {
  const int64_t heads = x.size(2), features = x.size(3);
  if (query_heads == heads) return x;
  const DTensor expanded = ops::broadcast_to(
      ops::expand_dims(x, 3), {x.size(0), x.size(1), heads, query_heads / heads, features});
  return ops::reshape(expanded, {x.size(0), x.size(1), query_heads, features});
}

std::vector<int64_t> HeadAttention::axes(int64_t rank) const {
  std::vector<int64_t> list;
  const std::string where = class_name() + " " + path();
  for (const int64_t axis : options_.axes) {
    const int64_t a = normalize_axis(axis, rank, where);
    if (a > 0 && a + 1 < rank && std::find(list.begin(), list.end(), a) == list.end()) {
      list.push_back(a);
      continue;
    }
    throw ShapeError(where, "attention_axes names axes between batch and features, each once",
                     to_string(options_.axes), "leave it out to attend over all of them");
  }
  for (int64_t a = 1; options_.axes.empty() && a + 1 < rank; ++a) list.push_back(a);
  return list;
}

HeadAttention::EinsumTerms HeadAttention::einsum_terms(int64_t rank) const {
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

/// Makes the layer (free…, bound…) · (bound…, output…), with `bound` summed axes: a projection to
/// heads and features, or back.
LayerHandle HeadAttention::projection(const std::string& name, int64_t rank, int64_t bound,
                                      const Shape& output) const {
  const int64_t free = rank - bound;
  const auto width = static_cast<int64_t>(output.size());
  const std::string free_letters = letters_from(0, free), bound_letters = letters_from(free, bound);
  const std::string output_letters = letters_from(rank, width);
  Shape shape(static_cast<size_t>(free - 1), -1);
  shape.insert(shape.end(), output.begin(), output.end());
  EinsumDenseOptions options = options_.projection;
  options.activation = name == "gate" ? "sigmoid" : "linear";
  const bool use_bias = name == "attention_output" ? options_.use_output_bias : options_.use_bias;
  if (use_bias) options.bias_axes = output_letters;
  options.name = name;
  options.dtype = to_string(dtype_policy());
  return EinsumDense(free_letters + bound_letters + "," + bound_letters + output_letters + "->" +
                         free_letters + output_letters,
                     shape, options);
}

void HeadAttention::add_projections(const Shapes& inputs, const std::string& prefix,
                                    const HeadShapes& heads) {
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.size() > 2 ? inputs[2] : value;
  const auto rank = static_cast<int64_t>(query.size());
  query_ = add_inner(prefix + "query_dense", projection("query", rank, 1, heads.query));
  key_ = add_inner(prefix + "key_dense", projection("key", rank, 1, heads.key));
  if (options_.use_gate) gate_ = add_inner("_gate_dense", projection("gate", rank, 1, heads.gate));
  value_ = add_inner(prefix + "value_dense", projection("value", rank, 1, heads.value));
  attention_output_ =
      add_inner(prefix + "output_dense", projection("attention_output", rank + 1, 2, heads.output));
  query_->build({query});
  key_->build({key});
  if (gate_) gate_->build({query});
  value_->build({value});
  Shape joined(query.begin(), query.end() - 1);
  joined.insert(joined.end(), heads.gate.begin(), heads.gate.end());
  attention_output_->build({joined});
  if (options_.norm_epsilon) add_norms(heads);
}

/// Makes and builds the norms of queries and keys.
void HeadAttention::add_norms(const HeadShapes& heads) {
  const auto norm = [this](const char* name, Shape shape) {
    const auto layer =
        add_inner(str("_", name), RMSNormalization({.epsilon = *options_.norm_epsilon,
                                                    .add_unit_offset = options_.norm_unit_offset,
                                                    .name = name,
                                                    .dtype = to_string(dtype_policy())}));
    shape.insert(shape.begin(), {-1, -1});
    layer->build({shape});
    return layer;
  };
  query_norm_ = norm("query_norm", heads.query);
  key_norm_ = norm("key_norm", heads.key);
}

/// Rotates queries or keys (batch, T, heads, features) by positions; undefined: 0, 1, 2, …
DTensor HeadAttention::rotated(const DTensor& heads, const DTensor& positions) const {
  return options_.rotary ? ops::rotary(heads, positions, *options_.rotary) : heads;
}

DTensor HeadAttention::scaled_scores(const DTensor& q, const DTensor& k,
                                     const EinsumTerms& terms) const {
  const DTensor query =
      options_.scale ? q * *options_.scale : q / std::sqrt(double(options_.key_dim));
  const DTensor scores =
      ops::einsum(terms.key + "," + terms.query + "->" + terms.scores, {repeated(k), query});
  if (!options_.soft_cap) return scores;
  return ops::tanh(scores / *options_.soft_cap) * *options_.soft_cap;
}

/// Returns the masks of a call on inputs with more axes than (batch, steps, features), whose masks
/// may have all axes but the features.
std::vector<DTensor> HeadAttention::masks_by_axes(const Inputs& inputs) const {
  const EinsumTerms terms = einsum_terms(inputs[0].rank());
  return masks_of(inputs, [&terms](size_t input, const DTensor& mask) {
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
bool HeadAttention::can_fuse(const DTensor& q, const DTensor& k, const CallContext& context) const {
  if (options_.scores || options_.soft_cap) return false;
  if (context.training && options_.dropout > 0) return false;
  const std::vector<int64_t> attended = axes(q.rank() - 1);
  return attended.size() == 1 && can_use_fused_attention(q, k, attended[0]);
}

DTensor HeadAttention::with_dropout(const DTensor& scores, const CallContext& context) const {
  if (!context.training || options_.dropout == 0) return scores;
  return ops::dropout(scores, options_.dropout,
                      draw_seed(context, path(), scores.mesh(), options_.seed));
}

std::vector<DTensor> HeadAttention::call_all(const Inputs& inputs, const CallContext& context) {
  const DTensor x = inputs[0].with_mask({}), value = inputs[1].with_mask({});
  const DTensor key = inputs.size() > 2 ? inputs[2].with_mask({}) : value;
  DTensor q = (*query_)(x, context);
  DTensor k = (*key_)(key, context);
  if (query_norm_) {
    q = (*query_norm_)(q, context);
    k = (*key_norm_)(k, context);
  }
  CachedSteps steps;
  if (context.cache && options_.causal) {
    check_cached_call(*this, inputs, options_.scores);
    steps = context.cache->next_steps(*this, x);
  }
  const DTensor positions = inputs.size() > 4 ? inputs[4] : steps.positions;
  q = rotated(q, positions);
  k = rotated(k, positions);
  const DTensor v = (*value_)(value, context);
  AttendedSteps attended{.key = k, .value = v, .causal = options_.causal};
  if (steps.first.defined()) {
    attended = cached_steps(*this, context, inputs, k, v, steps);
  } else {
    attended.masks = x.rank() > 3 ? masks_by_axes(inputs) : masks_of(inputs, placed_mask);
  }
  attended.window = options_.window;
  DTensor heads, probabilities;
  if (can_fuse(q, attended.key, context)) {
    heads = fused_heads(q, attended, axes(x.rank())[0], options_.scale);
  } else {
    const EinsumTerms terms = einsum_terms(x.rank());
    const DTensor scores = scaled_scores(q, attended.key, terms);
    const std::vector<int64_t> over = axes(x.rank());
    std::vector<DTensor> masks = attended.masks;
    masks.push_back(steps.first.defined()
                        ? cache_mask(steps.positions, attended.key.size(1), attended.window)
                        : position_mask(x.size(over[0]), attended.key.size(over[0]),
                                        attended.causal, attended.window, x.mesh()));
    probabilities = masked_softmax(scores, masks, std::ssize(over));
    heads = ops::einsum(terms.scores + "," + terms.key + "->" + terms.query,
                        {with_dropout(probabilities, context), repeated(attended.value)});
  }
  if (gate_) heads = heads * (*gate_)(x, context);
  std::vector<DTensor> outputs = {(*attention_output_)(heads, context)};
  if (options_.scores) outputs.push_back(probabilities);
  return outputs;
}

std::vector<DTensor> HeadAttention::masks(const Inputs& inputs, size_t outputs) {
  std::vector<DTensor> list(outputs);
  list[0] = inputs[0].mask();
  return list;
}

}  // namespace tessera::detail
