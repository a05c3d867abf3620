#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

/// Returns all elements of an axis but the last one, and all but the first one.
std::pair<DTensor, DTensor> consecutive(const DTensor& x, int64_t axis) {
  const int64_t extent = x.size(axis), pairs = std::max<int64_t>(extent - 1, 0);
  return {slice(x, axis, 0, pairs), slice(x, axis, extent - pairs, pairs)};
}

/// Returns the sum of two consecutive elements.
DTensor pairwise_sums(const DTensor& x, int64_t axis) {
  const auto [left, right] = consecutive(x, axis);
  return left + right;
}

}  // namespace

DTensor diff(const DTensor& x, int64_t n, int64_t axis) {
  if (n < 0) throw ConfigError("diff", "n must be at least 0", str(n), "");
  const int64_t a = normalize_axis(axis, x.rank(), "diff");
  DTensor y = x;
  for (int64_t i = 0; i < n; ++i) {
    const auto [left, right] = consecutive(y, a);
    y = x.dtype() == at::kBool ? not_equal(right, left) : right - left;
  }
  return y;
}

DTensor trapezoid(const DTensor& y, double dx, int64_t axis) {
  const int64_t a = normalize_axis(axis, y.rank(), "trapezoid");
  return cast(scale(sum(pairwise_sums(widened(y), a), {a}), dx / 2), y.dtype());
}

DTensor trapezoid(const DTensor& y, const DTensor& x, int64_t axis) {
  const int64_t a = normalize_axis(axis, y.rank(), "trapezoid");
  const bool is_vector = x.rank() == 1 && x.size(0) == y.size(a);
  if (!is_vector && x.shape() != y.shape()) {
    throw ShapeError("trapezoid",
                     "x has the shape of y, or one number for each element of the axis",
                     to_string(x.shape()) + " for y of " + to_string(y.shape()), "reshape it");
  }
  DTensor widths = diff(widened(x), 1, is_vector ? 0 : a);
  if (is_vector) {
    Shape shape(y.shape().size(), 1);
    shape[size_t(a)] = widths.size(0);
    widths = reshape(widths, shape);
  }
  return cast(scale(sum(pairwise_sums(widened(y), a) * widths, {a}), 0.5), y.dtype());
}

}  // namespace tessera::ops
