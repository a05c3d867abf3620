#include <tessera/layers/internal/attention_heads.hpp>

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

std::string letters_from(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + first + i);
  return text;
}

std::vector<DTensor> call_masks(const Inputs& inputs) {
  std::vector<DTensor> masks;
  if (inputs.size() > 3) {
    const DTensor& given = inputs[3];
    masks.push_back(given.dtype() == at::kBool ? given : ops::cast(given, at::kBool));
  }
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
    const DTensor own = inputs[i].mask();
    if (own.defined()) masks.push_back(ops::expand_dims(own, i == 0 ? -1 : -2));
  }
  return masks;
}

DTensor joined_masks(const std::vector<DTensor>& masks) {
  DTensor all;
  for (const DTensor& mask : masks) {
    if (mask.defined()) all = all.defined() ? ops::logical_and(all, mask) : mask;
  }
  return all;
}

DTensor place_mask(int64_t t, int64_t s, bool causal, const std::optional<int64_t>& window,
                   const Mesh& mesh) {
  if (!causal && !window) return {};
  const at::Tensor ahead = at::arange(t).unsqueeze(-1) - at::arange(s);
  at::Tensor near = at::ones_like(ahead, at::kBool);
  if (causal) near = near.logical_and(ahead.ge(0));
  if (window) near = near.logical_and(ahead.abs().lt(*window));
  return pack(near.unsqueeze(0), Layout::replicated(mesh, 3));
}

DTensor widened_mask(const DTensor& mask, int64_t kept, int64_t rank) {
  Shape shape = mask.shape();
  const auto missing = std::max<int64_t>(rank - mask.rank(), 0);
  shape.insert(shape.end() - std::min(kept, mask.rank()), static_cast<size_t>(missing), 1);
  return ops::reshape(mask, shape);
}

bool attends_at_once(const DTensor& query, const DTensor& key, int64_t steps) {
  const auto whole = [](const DTensor& x, int64_t axis) {
    return x.layout().num_shards(axis) == 1;
  };
  // Keys that are cut as the query's steps are gathered for scores, too.
  return whole(query, query.rank() - 1) && whole(key, key.rank() - 1) &&
         (whole(key, steps) || key.layout().axis(steps) == query.layout().axis(steps));
}

DTensor attention_shares(const DTensor& scores, const DTensor& mask, int64_t attended,
                         bool zeros) {
  // Sums of half-precision numbers are coarse.
  const at::ScalarType dtype = c10::promoteTypes(scores.dtype(), at::kFloat);
  DTensor logits = ops::cast(scores, dtype);
  DTensor counts;
  if (mask.defined()) {
    counts = widened_mask(mask, 2 * attended, scores.rank());
    constexpr double lowest = -std::numeric_limits<float>::max() / 2;
    logits = ops::where(counts, logits, scalar(lowest, scores.mesh(), dtype));
  }
  DTensor y = ops::reshape(
      ops::softmax(ops::flatten(logits, logits.rank() - attended), -1), logits.shape());
  if (counts.defined() && zeros) y = ops::where(counts, y, scalar(0, y.mesh(), dtype));
  return ops::cast(y, scores.dtype());
}

}  // namespace tessera::detail
