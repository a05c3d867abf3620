#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
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
  return scale(sum(x, axes, keepdims), 1.0 / double(count));
}

DTensor logsumexp(const DTensor& x, const Axes& axes, bool keepdims) {
  const DTensor x_max = max(stop_gradient(x), axes, true);
  // Shifting by an infinite maximum would give inf - inf = NaN.
  const DTensor zero = filled({}, 0, x.dtype(), Layout::replicated(x.mesh(), 0));
  const DTensor top = where(is_finite(x_max), x_max, zero);
  const DTensor total = sum(exp(x - top), axes, keepdims);
  return log(total) + reshape(top, total.shape());
}

std::pair<DTensor, DTensor> moments(const DTensor& x, const Axes& axes, bool keepdims) {
  const DTensor center = mean(x, axes, true);
  const DTensor var = mean(square(x - center), axes, keepdims);
  return {reshape(center, var.shape()), var};
}

DTensor variance(const DTensor& x, const Axes& axes, bool keepdims) {
  return moments(x, axes, keepdims).second;
}

}  // namespace tessera::ops
