#pragma once

#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Elementwise functions of one tensor. They keep shape and layout, and the dtype except that
/// isnan, isinf, is_finite, isposinf, isneginf and logical_not return bool. No communication,
/// except that all but `neg` resolve a partial sum first. x must be floating-point, but neg, abs,
/// sign and square take integers too, those about NaN and infinities any dtype, logical_not bool,
/// and bitwise_not integers only. Those without a name of keras.ops are in keras_names.hpp under
/// it.
DTensor neg(const DTensor& x);
DTensor abs(const DTensor& x);
DTensor sign(const DTensor& x);
DTensor exp(const DTensor& x);
DTensor exp2(const DTensor& x);
DTensor expm1(const DTensor& x);
DTensor log(const DTensor& x);
DTensor log1p(const DTensor& x);
DTensor log2(const DTensor& x);
DTensor log10(const DTensor& x);
DTensor sqrt(const DTensor& x);
DTensor rsqrt(const DTensor& x);
DTensor square(const DTensor& x);
DTensor reciprocal(const DTensor& x);
DTensor sin(const DTensor& x);
DTensor cos(const DTensor& x);
DTensor tan(const DTensor& x);
DTensor arcsin(const DTensor& x);
DTensor arccos(const DTensor& x);
DTensor arctan(const DTensor& x);
DTensor sinh(const DTensor& x);
DTensor cosh(const DTensor& x);
DTensor tanh(const DTensor& x);
DTensor arcsinh(const DTensor& x);
DTensor arccosh(const DTensor& x);
DTensor arctanh(const DTensor& x);
DTensor erf(const DTensor& x);
DTensor erfc(const DTensor& x);
DTensor erfinv(const DTensor& x);
DTensor sigmoid(const DTensor& x);
DTensor relu(const DTensor& x);
DTensor softplus(const DTensor& x);
DTensor floor(const DTensor& x);
DTensor ceil(const DTensor& x);
DTensor round(const DTensor& x);
DTensor trunc(const DTensor& x);
DTensor isnan(const DTensor& x);
DTensor isinf(const DTensor& x);
DTensor is_finite(const DTensor& x);
DTensor isposinf(const DTensor& x);
DTensor isneginf(const DTensor& x);
DTensor logical_not(const DTensor& x);
DTensor bitwise_not(const DTensor& x);

/// Elementwise functions of two tensors of one dtype, with NumPy broadcasting. `add` and `sub` pass
/// through partial sums over the same dimensions in both operands; other partial operands are
/// resolved first. Comparisons return bool. floor_div and remainder round towards minus infinity,
/// fmod towards 0. arctan2 is the angle of the point (b, a), hypot sqrt(a² + b²) and logaddexp
/// log(exp(a) + exp(b)), without overflow. Throws ShapeError if the shapes do not broadcast,
/// ConfigError if the dtypes differ or are not supported (arithmetic of bools; div, pow, arctan2,
/// hypot and logaddexp of integers; bitwise functions of others) and for an integer division by 0.
DTensor add(const DTensor& a, const DTensor& b);
DTensor sub(const DTensor& a, const DTensor& b);
DTensor mul(const DTensor& a, const DTensor& b);
DTensor div(const DTensor& a, const DTensor& b);
DTensor maximum(const DTensor& a, const DTensor& b);
DTensor minimum(const DTensor& a, const DTensor& b);
DTensor pow(const DTensor& a, const DTensor& b);
DTensor floor_div(const DTensor& a, const DTensor& b);
DTensor remainder(const DTensor& a, const DTensor& b);
DTensor fmod(const DTensor& a, const DTensor& b);
DTensor arctan2(const DTensor& a, const DTensor& b);
DTensor hypot(const DTensor& a, const DTensor& b);
DTensor logaddexp(const DTensor& a, const DTensor& b);
DTensor bitwise_and(const DTensor& a, const DTensor& b);
DTensor bitwise_or(const DTensor& a, const DTensor& b);
DTensor bitwise_xor(const DTensor& a, const DTensor& b);
DTensor bitwise_left_shift(const DTensor& a, const DTensor& b);
DTensor bitwise_right_shift(const DTensor& a, const DTensor& b);
DTensor equal(const DTensor& a, const DTensor& b);
DTensor not_equal(const DTensor& a, const DTensor& b);
DTensor less(const DTensor& a, const DTensor& b);
DTensor less_equal(const DTensor& a, const DTensor& b);
DTensor greater(const DTensor& a, const DTensor& b);
DTensor greater_equal(const DTensor& a, const DTensor& b);
DTensor logical_and(const DTensor& a, const DTensor& b);
DTensor logical_or(const DTensor& a, const DTensor& b);
DTensor logical_xor(const DTensor& a, const DTensor& b);

/// Convert degrees to radians and back, and return |x| (keras.ops.deg2rad, keras.ops.rad2deg,
/// keras.ops.fabs). Integers and bools become float32.
DTensor deg2rad(const DTensor& x);
DTensor rad2deg(const DTensor& x);
DTensor fabs(const DTensor& x);

/// x · factor and x + value for a constant; `scale` passes a partial sum through.
DTensor scale(const DTensor& x, double factor);
DTensor add_scalar(const DTensor& x, double value);
/// x^exponent for a constant exponent.
DTensor pow(const DTensor& x, double exponent);
/// x · factor for a 0-d tensor, so that a captured step can be replayed with another factor. Passes
/// a partial sum of x through.
DTensor scale_by(const DTensor& x, const DTensor& factor);

/// Converts x to another dtype. Widening casts pass a partial sum through; the gradient is cast
/// back to x's dtype.
DTensor cast(const DTensor& x, at::ScalarType dtype);
/// a where condition (bool) is true, else b; all three broadcast.
DTensor where(const DTensor& condition, const DTensor& a, const DTensor& b);
/// min(max(x, lo), hi); the gradient is 0 outside [lo, hi].
DTensor clip(const DTensor& x, double lo, double hi);
/// Replaces NaN and infinities, by default those by the largest and smallest finite numbers of the
/// dtype; their gradient is 0 (keras.ops.nan_to_num). Returns integers and bools as they are.
DTensor nan_to_num(const DTensor& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                   std::optional<double> neginf = std::nullopt);

}  // namespace tessera::ops

namespace tessera {

inline DTensor operator+(const DTensor& a, const DTensor& b) { return ops::add(a, b); }
inline DTensor operator-(const DTensor& a, const DTensor& b) { return ops::sub(a, b); }
inline DTensor operator*(const DTensor& a, const DTensor& b) { return ops::mul(a, b); }
inline DTensor operator/(const DTensor& a, const DTensor& b) { return ops::div(a, b); }
inline DTensor operator-(const DTensor& x) { return ops::neg(x); }
inline DTensor operator*(const DTensor& x, double factor) { return ops::scale(x, factor); }
inline DTensor operator*(double factor, const DTensor& x) { return ops::scale(x, factor); }
inline DTensor operator/(const DTensor& x, double divisor) { return ops::scale(x, 1 / divisor); }
inline DTensor operator+(const DTensor& x, double value) { return ops::add_scalar(x, value); }
inline DTensor operator-(const DTensor& x, double value) { return ops::add_scalar(x, -value); }

}  // namespace tessera
