#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

/// Activation functions that are more than one elementwise operation, fused forward and backward.
/// Shape, dtype and layout stay, and nothing is communicated, except by sparsemax; pending
/// reductions are resolved. All throw ConfigError unless x is floating.
namespace tessera::ops {

/// x for x > 0, else alpha (exp(x / width) - 1) (keras.ops.elu; with width alpha keras.ops.celu).
DTensor elu(const DTensor& x, double alpha = 1, double width = 1);
/// x Φ(x), the normal distribution function exact or by its approximation with tanh
/// (keras.ops.gelu).
DTensor gelu(const DTensor& x, bool approximate);
/// x where |x| > threshold, else 0 (keras.ops.hard_shrink).
DTensor hard_shrink(const DTensor& x, double threshold = 0.5);
/// min(max(x + 3, 0), 6) / 6 (keras.ops.hard_sigmoid).
DTensor hard_sigmoid(const DTensor& x);
/// x hard_sigmoid(x) (keras.ops.hard_silu).
DTensor hard_silu(const DTensor& x);
/// x for x > 0, else negative_slope · x (keras.ops.leaky_relu).
DTensor leaky_relu(const DTensor& x, double negative_slope = 0.2);
/// log(1 / (1 + exp(-x))), exact for large |x| (keras.ops.log_sigmoid).
DTensor log_sigmoid(const DTensor& x);
/// x tanh(log(1 + exp(x))) (keras.activations.mish).
DTensor mish(const DTensor& x);
/// min(max(x, 0), 6); at 0 and at 6 the gradient is 0 (keras.ops.relu6).
DTensor relu6(const DTensor& x);
/// 1.0507 x for x > 0, else 1.0507 · 1.67326 (exp(x) - 1), both with more digits, which keeps mean
/// and variance (keras.ops.selu; Klambauer, 2017).
DTensor selu(const DTensor& x);
/// x sigmoid(x) (keras.ops.silu).
DTensor silu(const DTensor& x);
/// |x| less `threshold`, at least 0, with the sign of x (keras.ops.soft_shrink).
DTensor soft_shrink(const DTensor& x, double threshold = 0.5);
/// x / (1 + |x|) (keras.ops.softsign).
DTensor softsign(const DTensor& x);
/// 0 for x <= -1, (x + 1)² / 4 up to 1, then x (keras.ops.sparse_plus).
DTensor sparse_plus(const DTensor& x);
/// min(max((x + 1) / 2, 0), 1) (keras.ops.sparse_sigmoid).
DTensor sparse_sigmoid(const DTensor& x);
/// (x + sqrt(x² + b)) / 2 (keras.ops.squareplus).
DTensor squareplus(const DTensor& x, double b = 4);
/// x - tanh(x) (keras.ops.tanh_shrink).
DTensor tanh_shrink(const DTensor& x);
/// x where x > threshold, else default_value (keras.ops.threshold).
DTensor threshold(const DTensor& x, double threshold, double default_value);

/// max(x - t, 0) along an axis, where t depends on the largest x of the axis, so that small ones
/// become 0 (keras.ops.sparsemax). Of the sorted x and their cumulative sums c, the first k, those
/// with k x > c - 1, give t = (c_1 + … + c_k - 1) / k, as Keras has it; in Martins and Astudillo
/// (2016) t is (c_k - 1) / k. A sharded axis is gathered.
DTensor sparsemax(const DTensor& x, int64_t axis = -1);

}  // namespace tessera::ops
