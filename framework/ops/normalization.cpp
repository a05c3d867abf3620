#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
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
  const DTensor wide = widened(x);
  const DTensor y = wide * rsqrt(mean(square(wide), axes, true) + epsilon);
  return cast(scale.defined() ? y * widened(scale) : y, x.dtype());
}

}  // namespace tessera::ops
