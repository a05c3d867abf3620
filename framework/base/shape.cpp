#include <tessera/framework/base/shape.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

Interval detail::intersect(Interval a, Interval b) {
  const int64_t lo = std::max(a.lo, b.lo);
  return {lo, std::max(lo, std::min(a.hi, b.hi))};
}

int64_t detail::numel(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) {
    if (!__builtin_mul_overflow(n, extent, &n)) continue;
    throw ShapeError("shape", "fewer than 2^63 elements", to_string(shape), "use smaller extents");
  }
  return n;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

Interval detail::shard_interval(int64_t n, int64_t k, int64_t i) {
  return {i * n / k, (i + 1) * n / k};
}

int64_t detail::normalize_axis(int64_t axis, int64_t rank, const std::string& where) {
  if (axis < -rank || axis >= rank) {
    throw ShapeError(where, str("axis must be in [", -rank, ", ", rank, ")"), str("axis ", axis),
                     "name an axis the tensor has");
  }
  return axis < 0 ? axis + rank : axis;
}

}  // namespace tessera
