#include <tessera/framework/nn/internal/sample_weights.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {
namespace {

/// Gives both the same rank if `higher` has one axis more, last and of extent 1.
void drop_or_add_axis(DTensor& lower, DTensor& higher) {
  if (higher.rank() != lower.rank() + 1 || higher.size(-1) != 1) return;
  if (lower.rank() == 1) {
    lower = ops::expand_dims(lower, -1);
  } else {
    higher = ops::squeeze(higher, {-1});
  }
}

/// Whether two shapes broadcast as in NumPy: extents that differ include a 1.
bool broadcast_together(const Shape& a, const Shape& b) {
  for (size_t back = 1; back <= std::min(a.size(), b.size()); ++back) {
    const int64_t x = a[a.size() - back], y = b[b.size() - back];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

}  // namespace

std::pair<DTensor, DTensor> match_ranks(DTensor a, DTensor b) {
  drop_or_add_axis(a, b);
  drop_or_add_axis(b, a);
  return {std::move(a), std::move(b)};
}

at::ScalarType loss_dtype(const DTensor& predictions) {
  return predictions.dtype() == at::kDouble ? at::kDouble : at::kFloat;
}

DTensor masked_weights(const std::string& where, const DTensor& sample_weight, const DTensor& mask,
                       at::ScalarType dtype) {
  if (!mask.defined()) return sample_weight.defined() ? ops::cast(sample_weight, dtype) : mask;
  if (!sample_weight.defined()) return ops::cast(mask, dtype);
  const auto [counted, weights] =
      match_ranks(ops::cast(mask, dtype), ops::cast(sample_weight, dtype));
  check_weights(where.c_str(), counted.shape(), weights.shape());
  return counted * weights;
}

void check_weights(const char* where, const Shape& values, const Shape& weights) {
  bool fits = weights.size() <= values.size();
  for (size_t back = 1; fits && back <= weights.size(); ++back) {
    const int64_t weight = weights[weights.size() - back];
    fits = weight == 1 || weight == values[values.size() - back];
  }
  if (fits) return;
  throw ShapeError(where, "sample weights broadcast to the values, " + to_string(values),
                   to_string(weights), "give one weight per sample");
}

void check_mask(const char* where, const Shape& values, const Shape& mask) {
  if (broadcast_together(values, mask)) return;
  throw ShapeError(where, "the predictions' mask fits the values, " + to_string(values),
                   to_string(mask), "mask the axes that the values have");
}

void check_labels(const std::string& where, const Shape& labels, const Shape& predictions) {
  if (predictions.empty()) {
    throw ShapeError(where, "predictions have at least one axis", to_string(predictions),
                     "give predictions a batch axis");
  }
  if (broadcast_together(labels, predictions)) return;
  throw ShapeError(where, "labels have the shape of the predictions, " + to_string(predictions),
                   to_string(labels), "reshape the labels or the model's output");
}

}  // namespace tessera::detail
