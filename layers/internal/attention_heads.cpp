#include <tessera/layers/internal/attention_heads.hpp>

#include <algorithm>
#include <functional>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/key_value_cache.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

namespace {

/// Returns the masks of a call. `all(i, mask)` maps the mask of input i, a key or value, to that of
/// all steps.
std::vector<DTensor> masks_of(const Inputs& inputs,
                              const std::function<DTensor(size_t, const DTensor&)>& all) {
  std::vector<DTensor> masks;
  if (inputs.size() > 3) {
    const DTensor& attention_mask = inputs[3];
    masks.push_back(attention_mask.dtype() == at::kBool ? attention_mask
                                                        : ops::cast(attention_mask, at::kBool));
  }
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
    const DTensor mask = inputs[i].mask();
    if (!mask.defined()) continue;
    masks.push_back(i == 0 ? ops::expand_dims(mask, -1) : ops::expand_dims(all(i, mask), -2));
  }
  return masks;
}

}  // namespace

std::string letters_from(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + first + i);
  return text;
}

std::vector<DTensor> call_masks(const Inputs& inputs) {
  return masks_of(inputs, [](size_t, const DTensor& mask) { return mask; });
}

AttendedSteps attended_steps(const Layer& layer, const CallContext& context, const Inputs& inputs,
                             const DTensor& key, const DTensor& value, const StepOptions& options) {
  const auto& [causal, scores, window] = options;
  if (!context.cache || !causal) return {key, value, call_masks(inputs), causal, window};
  if (key.rank() != 4 || scores) {
    throw ConfigError(
        layer.class_name() + " " + layer.path(),
        "with a key-value cache, inputs are (batch, steps, features) and no scores are returned",
        scores ? "return_attention_scores" : str("rank ", key.rank() - 1),
        "call the model without one");
  }
  KeyValueCache& cache = *context.cache;
  AttendedSteps all{.key = cache.extended(layer, "key", key),
                    .value = cache.extended(layer, "value", value)};
  all.masks = masks_of(inputs, [&](size_t input, const DTensor& mask) {
    return cache.extended(layer, str("mask_", input), mask);
  });
  const int64_t steps = inputs[0].size(1), before = all.key.size(1) - steps;
  if (before == 0) {
    all.causal = true;
    all.window = window;
  } else {
    all.masks.push_back(position_mask(steps, all.key.size(1), true, window, key.mesh(), before));
    if (!all.masks.back().defined()) all.masks.pop_back();
  }
  return all;
}

DTensor combined_mask(const std::vector<DTensor>& masks) {
  DTensor all;
  for (const DTensor& mask : masks) {
    if (mask.defined()) all = all.defined() ? ops::logical_and(all, mask) : mask;
  }
  return all;
}

DTensor position_mask(int64_t t, int64_t s, bool causal, const std::optional<int64_t>& window,
                      const Mesh& mesh, int64_t first) {
  const bool all_are_earlier = causal && first >= s - 1;
  if (!window && (!causal || all_are_earlier)) return {};
  const at::Tensor ahead = at::arange(first, first + t).unsqueeze(-1) - at::arange(s);
  at::Tensor near = at::ones_like(ahead, at::kBool);
  if (causal) near = near.logical_and(ahead.ge(0));
  if (window) near = near.logical_and(ahead.abs().lt(*window));
  return pack(near.unsqueeze(0), Layout::replicated(mesh, 3));
}

DTensor expanded_mask(const DTensor& mask, int64_t trailing, int64_t rank) {
  Shape shape = mask.shape();
  const auto missing = std::max<int64_t>(rank - mask.rank(), 0);
  shape.insert(shape.end() - std::min(trailing, mask.rank()), static_cast<size_t>(missing), 1);
  return ops::reshape(mask, shape);
}

bool can_use_fused_attention(const DTensor& query, const DTensor& key, int64_t steps) {
  const auto unsharded = [](const DTensor& x, int64_t axis) {
    return x.layout().num_shards(axis) == 1;
  };
  // Keys sharded like the query's steps would be gathered for scores too.
  return unsharded(query, query.rank() - 1) && unsharded(key, key.rank() - 1) &&
         (unsharded(key, steps) || key.layout().axis(steps) == query.layout().axis(steps));
}

DTensor masked_softmax(const DTensor& scores, const DTensor& mask, int64_t attended, bool zeros) {
  // Sums in float16 and bfloat16 are too imprecise.
  const at::ScalarType dtype = c10::promoteTypes(scores.dtype(), at::kFloat);
  DTensor logits = ops::cast(scores, dtype);
  DTensor keep;
  if (mask.defined()) {
    keep = expanded_mask(mask, 2 * attended, scores.rank());
    constexpr double lowest = -std::numeric_limits<float>::max() / 2;
    logits = ops::where(keep, logits, scalar(lowest, scores.mesh(), dtype));
  }
  DTensor y = ops::reshape(ops::softmax(ops::flatten(logits, logits.rank() - attended), -1),
                           logits.shape());
  if (keep.defined() && zeros) y = ops::where(keep, y, scalar(0, y.mesh(), dtype));
  return ops::cast(y, scores.dtype());
}

}  // namespace tessera::detail
