#pragma once

#include <vector>

#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::ops {

/// The functions of keras.ops that have other names here, under Keras' names, too: abs, neg,
/// is_finite, bitwise_not, sub, mul, div, floor_div, remainder, pow and the shifts.
inline DTensor absolute(const DTensor& x) { return abs(x); }
inline DTensor negative(const DTensor& x) { return neg(x); }
inline DTensor isfinite(const DTensor& x) { return is_finite(x); }
inline DTensor bitwise_invert(const DTensor& x) { return bitwise_not(x); }
inline DTensor subtract(const Operand& a, const Operand& b) { return sub(a, b); }
inline DTensor multiply(const Operand& a, const Operand& b) { return mul(a, b); }
inline DTensor divide(const Operand& a, const Operand& b) { return div(a, b); }
inline DTensor true_divide(const Operand& a, const Operand& b) { return div(a, b); }
inline DTensor floor_divide(const Operand& a, const Operand& b) { return floor_div(a, b); }
inline DTensor mod(const Operand& a, const Operand& b) { return remainder(a, b); }
inline DTensor power(const Operand& a, const Operand& b) { return pow(a, b); }
inline DTensor left_shift(const Operand& a, const Operand& b) { return bitwise_left_shift(a, b); }
inline DTensor right_shift(const Operand& a, const Operand& b) { return bitwise_right_shift(a, b); }
/// max, under another name.
inline DTensor amax(const DTensor& x, const Axes& axes = {}, bool keepdims = false) {
  return max(x, axes, keepdims);
}
/// min, under another name.
inline DTensor amin(const DTensor& x, const Axes& axes = {}, bool keepdims = false) {
  return min(x, axes, keepdims);
}
/// variance, under another name.
inline DTensor var(const DTensor& x, const Axes& axes = {}, bool keepdims = false) {
  return variance(x, axes, keepdims);
}
/// concat, under another name.
inline DTensor concatenate(const std::vector<DTensor>& tensors, int64_t axis = 0) {
  return concat(tensors, axis);
}

}  // namespace tessera::ops
