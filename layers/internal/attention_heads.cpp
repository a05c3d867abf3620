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

/// Places the mask of a query (batch, T) or of a key or value (batch, S) for (batch, T, S).
DTensor placed_mask(size_t input, const DTensor& mask) {
  return ops::expand_dims(mask, input == 0 ? -1 : -2);
}

/// Returns the masks of a call, those of the inputs placed by `place`.
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

}  // namespace

std::string letters_from(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + first + i);
  return text;
}

std::vector<DTensor> call_masks(const Inputs& inputs, const MaskPlacer& place) {
  return masks_of(inputs, place ? place : MaskPlacer(placed_mask));
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
    if (input == 0) return placed_mask(input, mask);
    return placed_mask(input, cache.extended(layer, str("mask_", input), mask));
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

}  // namespace tessera::detail
