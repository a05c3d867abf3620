
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::ops {

using namespace detail;

DTensor mean(const DTensor& x, const Axes& axes, bool keepdims) {
  const int64_t count = reduced_count(x.shape(), axes);
  if (count == 0) {
    throw ShapeError("mean", "the reduced axes must not be empty", to_string(x.shape()),
                     "pass a tensor that is not empty");
  }
  return cast(scale(wide_sum(x, axes, keepdims), 1.0 / double(count)), x.dtype());
}

DTensor logsumexp(const DTensor& x, const Axes& axes, bool keepdims) {
  const DTensor wide = widened(x);
  const DTensor x_max = max(stop_gradient(wide), axes, true);
  // Shifting by an infinite maximum would give inf - inf = NaN.
  const DTensor zero = filled({}, 0, wide.dtype(), Layout::replicated(x.mesh(), 0));
  const DTensor top = where(is_finite(x_max), x_max, zero);
  const DTensor total = sum(exp(wide - top), axes, keepdims);
  return cast(log(total) + reshape(top, total.shape()), x.dtype());
}

std::pair<DTensor, DTensor> moments(const DTensor& x, const Axes& axes, bool keepdims) {
  // Squares in float16 overflow.
  const DTensor wide = widened(x);
  const DTensor center = mean(wide, axes, true);
  const DTensor var = mean(square(wide - center), axes, keepdims);
  return {cast(reshape(center, var.shape()), x.dtype()), cast(var, x.dtype())};
}

DTensor variance(const DTensor& x, const Axes& axes, bool keepdims) {
  return moments(x, axes, keepdims).second;
}

DTensor std(const DTensor& x, const Axes& axes, bool keepdims) {
  return cast(sqrt(variance(widened(x), axes, keepdims)), x.dtype());
}

DTensor average(const DTensor& x, const Axes& axes, const DTensor& weights) {
  if (!weights.defined()) return mean(x, axes);
  DTensor factors = widened(weights);
  if (weights.shape() != x.shape()) {
    const int64_t a = axes.size() == 1 ? normalize_axis(axes[0], x.rank(), "average") : -1;
    if (a < 0 || weights.rank() != 1 || weights.size(0) != x.size(a)) {
      throw ShapeError("average",
                       "weights have the shape of x, or one number for each element of "
                       "the one axis",
                       to_string(weights.shape()) + " for " + to_string(x.shape()), "reshape them");
    }
    Shape shape(x.shape().size(), 1);
    shape[size_t(a)] = weights.size(0);
    factors = broadcast_to(reshape(factors, shape), x.shape());
  }
  return cast(sum(widened(x) * factors, axes) / sum(factors, axes), x.dtype());
}

DTensor count_nonzero(const DTensor& x, const Axes& axes, bool keepdims) {
  return sum(cast(not_equal(x, 0), at::kInt), axes, keepdims);
}

DTensor ptp(const DTensor& x, const Axes& axes, bool keepdims) {
  return max(x, axes, keepdims) - min(x, axes, keepdims);
}

}  // namespace tessera::ops
