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

/// Appends axes of extent 1 until there are `rank`.
DTensor with_rank(DTensor x, int64_t rank) {
  while (x.rank() < rank) x = ops::expand_dims(x, -1);
  return x;
}

/// Drops the last axis of either shape if match_ranks() drops it, or adds it to the other.
void match_shapes(Shape& a, Shape& b) {
  if (a.size() == b.size() + 1 && a.back() == 1) a.pop_back();
  if (b.size() == a.size() + 1 && b.back() == 1) b.pop_back();
}

/// Whether shapes whose first axes correspond broadcast together; the lower one has extents 1
/// behind its last axis.
bool broadcast_from_batch(Shape a, Shape b) {
  match_shapes(a, b);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return false;
  }
  return true;
}

/// Whether weights broadcast to values whose first axes are theirs.
bool weights_fit(Shape values, Shape weights) {
  match_shapes(values, weights);
  if (weights.size() > values.size()) return false;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != values[i] && weights[i] != 1) return false;
  }
  return true;
}

/// Returns the shapes of weights for values (4, 3, 2): "(4,), (4, 3) or (4, 3, 2)".
std::string shapes_of_weights(const Shape& values) {
  std::string text = to_string(Shape(values.begin(), values.begin() + (values.empty() ? 0 : 1)));
  for (size_t rank = 2; rank <= values.size(); ++rank) {
    const Shape shape(values.begin(), values.begin() + static_cast<int64_t>(rank));
    text += (rank < values.size() ? ", " : " or ") + to_string(shape);
  }
  return text;
}

}  // namespace

std::pair<DTensor, DTensor> match_ranks(DTensor a, DTensor b) {
  drop_or_add_axis(a, b);
  drop_or_add_axis(b, a);
  return {std::move(a), std::move(b)};
}

std::pair<DTensor, DTensor> align_ranks(const DTensor& a, const DTensor& b) {
  const auto [x, y] = match_ranks(a, b);
  return {with_rank(x, y.rank()), with_rank(y, x.rank())};
}

at::ScalarType loss_dtype(const DTensor& predictions) {
  return predictions.dtype() == at::kDouble ? at::kDouble : at::kFloat;
}

DTensor masked_weights(const std::string& where, const DTensor& sample_weight, const DTensor& mask,
                       at::ScalarType dtype) {
  if (!mask.defined()) return sample_weight.defined() ? ops::cast(sample_weight, dtype) : mask;
  if (!sample_weight.defined()) return ops::cast(mask, dtype);
  check_weights(where, mask.shape(), sample_weight.shape());
  const auto [counted, weights] =
      align_ranks(ops::cast(mask, dtype), ops::cast(sample_weight, dtype));
  return counted * weights;
}

void check_weights(const std::string& where, const Shape& values, const Shape& weights) {
  if (weights_fit(values, weights)) return;
  throw ShapeError(where, "sample weights have the shape " + shapes_of_weights(values),
                   to_string(weights), "give one weight per row, or one per value");
}

DTensor checked_weights(const std::string& where, const Shape& values, const DTensor& weights) {
  check_weights(where, values, weights.shape());
  const auto rank = static_cast<int64_t>(values.size());
  return with_rank(weights.rank() > rank ? ops::squeeze(weights, {-1}) : weights, rank);
}

void check_mask(const std::string& where, const Shape& values, const Shape& mask) {
  if (broadcast_from_batch(values, mask)) return;
  throw ShapeError(where, "the predictions' mask fits the values, " + to_string(values),
                   to_string(mask), "mask the axes that the values have");
}

void check_labels(const std::string& where, const Shape& labels, const Shape& predictions) {
  if (predictions.empty()) {
    throw ShapeError(where, "predictions have at least one axis", to_string(predictions),
                     "give predictions a batch axis");
  }
  Shape a = labels, b = predictions;
  match_shapes(a, b);
  const bool ranks = a.size() == b.size();
  if (ranks && (a.empty() || a.back() == b.back()) && broadcast_from_batch(a, b)) return;
  const bool classes =
      !b.empty() && b.back() > 1 && (a.size() + 1 == b.size() || (ranks && a.back() == 1));
  throw ShapeError(where, "labels have the shape of the predictions, " + to_string(predictions),
                   to_string(labels),
                   classes ? "one-hot encode class indices, or use a sparse loss or metric"
                           : "reshape the labels or the model's output");
}

}  // namespace tessera::detail
