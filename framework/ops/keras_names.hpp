#pragma once

#include <optional>
#include <vector>

#include <tessera/framework/ops/attention/attention.hpp>
#include <tessera/framework/ops/layer_norm.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/pool.hpp>
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
/// avg_pool, under another name.
inline DTensor average_pool(const DTensor& x, const std::vector<WindowAxis>& axes) {
  return avg_pool(x, axes);
}
/// adaptive_avg_pool, under another name.
inline DTensor adaptive_average_pool(const DTensor& x, const std::vector<int64_t>& sizes) {
  return adaptive_avg_pool(x, sizes);
}
/// layer_norm, under another name and with Keras' default epsilon of this function.
inline DTensor layer_normalization(const DTensor& x, const DTensor& gamma = {},
                                   const DTensor& beta = {}, const Axes& axes = {-1},
                                   double epsilon = 1e-7) {
  return layer_norm(x, gamma, beta, axes, epsilon);
}
/// attention, with a bias that is added to the scores and a bool mask, either of which may be
/// undefined.
inline DTensor dot_product_attention(const DTensor& query, const DTensor& key, const DTensor& value,
                                     const DTensor& bias = {}, const DTensor& mask = {},
                                     std::optional<double> scale = std::nullopt,
                                     bool is_causal = false) {
  SdpaOptions options;
  options.scale = scale;
  options.causal = is_causal;
  if (mask.defined()) options.masks = {mask};
  return attention(query, key, value, bias, options);
}

}  // namespace tessera::ops
