#include <limits>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

bool may_hold_nan(const DTensor& x) { return at::isFloatingType(x.dtype()); }

DTensor without_nan(const DTensor& x, double value) {
  return may_hold_nan(x) ? where(isnan(x), value, x) : x;
}

/// Returns how many elements are not NaN, in x's dtype.
DTensor count_numbers(const DTensor& x, const Axes& axes, bool keepdims) {
  return sum(cast(logical_not(isnan(x)), x.dtype()), axes, keepdims);
}

/// Returns y, an extreme of elements of x, or NaN where all of these are NaN.
DTensor or_nan(const DTensor& y, const DTensor& x, const Axes& axes, bool keepdims) {
  if (!may_hold_nan(x)) return y;
  return where(all(isnan(x), axes, keepdims), std::numeric_limits<double>::quiet_NaN(), y);
}

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

DTensor nansum(const DTensor& x, const Axes& axes, bool keepdims) {
  return sum(without_nan(x, 0), axes, keepdims);
}

DTensor nanmean(const DTensor& x, const Axes& axes, bool keepdims) {
  if (!may_hold_nan(x)) return mean(x, axes, keepdims);
  const DTensor wide = widened(x);
  return cast(nansum(wide, axes, keepdims) / count_numbers(wide, axes, keepdims), x.dtype());
}

DTensor nanmax(const DTensor& x, const Axes& axes, bool keepdims) {
  return or_nan(max(without_nan(x, -infinite), axes, keepdims), x, axes, keepdims);
}

DTensor nanmin(const DTensor& x, const Axes& axes, bool keepdims) {
  return or_nan(min(without_nan(x, infinite), axes, keepdims), x, axes, keepdims);
}

DTensor nanprod(const DTensor& x, const Axes& axes, bool keepdims) {
  return prod(without_nan(x, 1), axes, keepdims);
}

DTensor nanvar(const DTensor& x, const Axes& axes, bool keepdims) {
  if (!may_hold_nan(x)) return variance(x, axes, keepdims);
  const DTensor wide = widened(x);
  // Replaced before the square, whose gradient at NaN would be NaN.
  const DTensor deviations = where(isnan(wide), 0, wide - nanmean(wide, axes, true));
  const DTensor total = sum(square(deviations), axes, keepdims);
  return cast(total / count_numbers(wide, axes, keepdims), x.dtype());
}

DTensor nanstd(const DTensor& x, const Axes& axes, bool keepdims) {
  return cast(sqrt(nanvar(widened(x), axes, keepdims)), x.dtype());
}

DTensor nancumsum(const DTensor& x, int64_t axis) { return cumsum(without_nan(x, 0), axis); }
DTensor nancumprod(const DTensor& x, int64_t axis) { return cumprod(without_nan(x, 1), axis); }

}  // namespace tessera::ops
