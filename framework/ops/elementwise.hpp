#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Elementwise functions of one tensor; shape, dtype and layout stay. No communication; `neg` keeps
/// a pending sum, the others resolve it. Of float tensors, except neg, abs, sign, square (any
/// number) and logical_not (bool).
DTensor neg(const DTensor& x);
DTensor abs(const DTensor& x);
DTensor sign(const DTensor& x);
DTensor exp(const DTensor& x);
DTensor expm1(const DTensor& x);
DTensor log(const DTensor& x);
DTensor log1p(const DTensor& x);
DTensor sqrt(const DTensor& x);
DTensor rsqrt(const DTensor& x);
DTensor square(const DTensor& x);
DTensor reciprocal(const DTensor& x);
DTensor sin(const DTensor& x);
DTensor cos(const DTensor& x);
DTensor tanh(const DTensor& x);
DTensor erf(const DTensor& x);
DTensor sigmoid(const DTensor& x);
DTensor relu(const DTensor& x);
DTensor softplus(const DTensor& x);
DTensor floor(const DTensor& x);
DTensor ceil(const DTensor& x);
DTensor round(const DTensor& x);
DTensor is_finite(const DTensor& x);
DTensor logical_not(const DTensor& x);

/// Elementwise functions of two tensors of one dtype, with NumPy broadcasting. `add` and `sub` keep
/// a sum pending over the same dimensions in both; otherwise pending operands are resolved first.
/// Comparisons give bool. floor_div and remainder round towards minus infinity. Throws ShapeError
/// when the shapes do not broadcast, ConfigError when the dtypes differ or have no such function
/// (arithmetic of bools, div and pow of integers) and where integers are divided by 0.
DTensor add(const DTensor& a, const DTensor& b);
DTensor sub(const DTensor& a, const DTensor& b);
DTensor mul(const DTensor& a, const DTensor& b);
DTensor div(const DTensor& a, const DTensor& b);
DTensor maximum(const DTensor& a, const DTensor& b);
DTensor minimum(const DTensor& a, const DTensor& b);
DTensor pow(const DTensor& a, const DTensor& b);
DTensor floor_div(const DTensor& a, const DTensor& b);
DTensor remainder(const DTensor& a, const DTensor& b);
DTensor equal(const DTensor& a, const DTensor& b);
DTensor not_equal(const DTensor& a, const DTensor& b);
DTensor less(const DTensor& a, const DTensor& b);
DTensor less_equal(const DTensor& a, const DTensor& b);
DTensor greater(const DTensor& a, const DTensor& b);
DTensor greater_equal(const DTensor& a, const DTensor& b);
DTensor logical_and(const DTensor& a, const DTensor& b);
DTensor logical_or(const DTensor& a, const DTensor& b);

/// x · factor and x + value by a constant; scale keeps a pending sum.
DTensor scale(const DTensor& x, double factor);
DTensor add_scalar(const DTensor& x, double value);
/// x^exponent by a constant.
DTensor pow(const DTensor& x, double exponent);
/// x · factor, a 0-d tensor: what changes each step is an input. Keeps a pending sum of x.
DTensor scale_by(const DTensor& x, const DTensor& factor);

/// Another dtype. Widening casts keep a pending sum; the gradient is cast back.
DTensor cast(const DTensor& x, at::ScalarType dtype);
/// a where condition (bool) holds, else b; all three broadcast.
DTensor where(const DTensor& condition, const DTensor& a, const DTensor& b);
/// min(max(x, lo), hi); the gradient is 0 outside.
DTensor clip(const DTensor& x, double lo, double hi);

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
