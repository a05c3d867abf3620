#include <tessera/framework/ops/operand.hpp>

#include <numbers>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::ops {

namespace {

at::ScalarType dtype_beside(const Operand& number, at::ScalarType dtype) {
  if (!number.is_integer && !at::isFloatingType(dtype)) return at::kFloat;
  return number.is_integer && dtype == at::kBool ? at::kInt : dtype;
}

/// Returns both as tensors of one dtype, on one mesh.
std::pair<DTensor, DTensor> as_tensors(const Operand& a, const Operand& b) {
  if (a.tensor.defined() && b.tensor.defined()) return {a.tensor, b.tensor};
  const DTensor& x = a.tensor.defined() ? a.tensor : b.tensor;
  if (!x.defined()) {
    throw ConfigError("Operand", "one of two operands is a tensor", "two numbers",
                      "compute with the numbers, or pack() one");
  }
  const Operand& number = a.tensor.defined() ? b : a;
  const at::ScalarType dtype = dtype_beside(number, x.dtype());
  const DTensor tensor = cast(x, dtype), other = scalar(number.number, x.mesh(), dtype);
  return a.tensor.defined() ? std::pair(tensor, other) : std::pair(other, tensor);
}

/// Returns a tensor in which differences are neither integers nor rounded to 16 bits.
DTensor comparable(const DTensor& x) {
  return at::isFloatingType(x.dtype()) ? detail::widened(x) : cast(x, at::kDouble);
}

using Function = DTensor (*)(const DTensor&, const DTensor&);

DTensor call(Function function, const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  return function(x, y);
}

}  // namespace

DTensor add(const Operand& a, const Operand& b) { return call(add, a, b); }
DTensor sub(const Operand& a, const Operand& b) { return call(sub, a, b); }
DTensor mul(const Operand& a, const Operand& b) { return call(mul, a, b); }
DTensor div(const Operand& a, const Operand& b) { return call(div, a, b); }
DTensor maximum(const Operand& a, const Operand& b) { return call(maximum, a, b); }
DTensor minimum(const Operand& a, const Operand& b) { return call(minimum, a, b); }
DTensor pow(const Operand& a, const Operand& b) { return call(pow, a, b); }
DTensor floor_div(const Operand& a, const Operand& b) { return call(floor_div, a, b); }
DTensor remainder(const Operand& a, const Operand& b) { return call(remainder, a, b); }
DTensor fmod(const Operand& a, const Operand& b) { return call(fmod, a, b); }
DTensor arctan2(const Operand& a, const Operand& b) { return call(arctan2, a, b); }
DTensor hypot(const Operand& a, const Operand& b) { return call(hypot, a, b); }
DTensor logaddexp(const Operand& a, const Operand& b) { return call(logaddexp, a, b); }
DTensor bitwise_and(const Operand& a, const Operand& b) { return call(bitwise_and, a, b); }
DTensor bitwise_or(const Operand& a, const Operand& b) { return call(bitwise_or, a, b); }
DTensor bitwise_xor(const Operand& a, const Operand& b) { return call(bitwise_xor, a, b); }
DTensor bitwise_left_shift(const Operand& a, const Operand& b) {
  return call(bitwise_left_shift, a, b);
}
DTensor bitwise_right_shift(const Operand& a, const Operand& b) {
  return call(bitwise_right_shift, a, b);
}
DTensor equal(const Operand& a, const Operand& b) { return call(equal, a, b); }
DTensor not_equal(const Operand& a, const Operand& b) { return call(not_equal, a, b); }
DTensor less(const Operand& a, const Operand& b) { return call(less, a, b); }
DTensor less_equal(const Operand& a, const Operand& b) { return call(less_equal, a, b); }
DTensor greater(const Operand& a, const Operand& b) { return call(greater, a, b); }
DTensor greater_equal(const Operand& a, const Operand& b) { return call(greater_equal, a, b); }

DTensor where(const DTensor& condition, const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  return where(condition, x, y);
}

DTensor divide_no_nan(const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  const DTensor is_zero = equal(y, 0);
  // A quotient by 0 would have a gradient of NaN even where it is not selected.
  return where(is_zero, 0, div(x, where(is_zero, 1, y)));
}

DTensor fmax(const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  return where(isnan(x), y, where(isnan(y), x, maximum(x, y)));
}

DTensor fmin(const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  return where(isnan(x), y, where(isnan(y), x, minimum(x, y)));
}

DTensor heaviside(const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  const DTensor step = cast(greater(x, 0), x.dtype());
  return where(equal(x, 0), y, where(isnan(x), x, step));
}

DTensor logaddexp2(const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  constexpr double ln2 = std::numbers::ln2;
  return scale(logaddexp(scale(x, ln2), scale(y, ln2)), 1 / ln2);
}

DTensor isclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  const auto [first, second] = as_tensors(a, b);
  const DTensor x = comparable(first), y = comparable(second);
  const DTensor tolerance = add_scalar(scale(abs(y), rtol), atol);
  const DTensor near = logical_and(less_equal(abs(x - y), tolerance), is_finite(y));
  const DTensor close = logical_or(near, equal(x, y));
  return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}

DTensor allclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan));
}

}  // namespace tessera::ops
