#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/normalize.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/layer_norm.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

using namespace detail;

DTensor batch_normalization(const DTensor& x, const DTensor& mean, const DTensor& variance,
                            int64_t axis, const DTensor& offset, const DTensor& scale,
                            double epsilon) {
  const int64_t a = normalize_axis(axis, x.rank(), "batch_normalization");
  Shape shape(x.shape().size(), 1);
  shape[size_t(a)] = x.size(a);
  const auto along = [&](const DTensor& values) {
    if (values.rank() == 1 && values.size(0) == x.size(a)) return reshape(widened(values), shape);
    throw ShapeError(
        "batch_normalization",
        str("moments, scale and offset have shape (", x.size(a), ",), the extent of the axis"),
        to_string(values.shape()), "reshape them or name another axis");
  };
  DTensor factor = rsqrt(along(variance) + epsilon);
  if (scale.defined()) factor = factor * along(scale);
  const DTensor y = (widened(x) - along(mean)) * factor;
  return cast(offset.defined() ? y + along(offset) : y, x.dtype());
}

DTensor rms_normalization(const DTensor& x, const DTensor& scale, const Axes& axes,
                          double epsilon) {
  Axes list;
  for (const int64_t axis : axes)
    list.push_back(normalize_axis(axis, x.rank(), "rms_normalization"));
  Shape weights(x.shape().size(), 1);
  if (!scale.defined()) {
    for (const int64_t axis : list) weights[size_t(axis)] = x.size(axis);
    return normalized_over(x, scale, {}, weights, list, epsilon, /*centered=*/false);
  }
  const Shape& own = scale.shape();
  const int64_t shared = std::min(scale.rank(), x.rank());
  std::copy(own.end() - shared, own.end(), weights.end() - shared);
  return normalized_over(x, reshape(scale, weights), {}, weights, list, epsilon,
                         /*centered=*/false);
}

}  // namespace tessera::ops
