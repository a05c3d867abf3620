#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

/// Activation functions with fused forward and backward kernels. All but glu keep shape, dtype and
/// layout; all resolve partial sums first and, except for glu and sparsemax, communicate nothing
/// else. All throw ConfigError unless x is floating-point.
namespace tessera::ops {

/// max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1) (keras.ops.celu; Barron, 2017). Throws
/// ConfigError for alpha 0.
DTensor celu(const DTensor& x, double alpha = 1);
/// x for x > 0, else alpha (exp(x / width) - 1) (keras.ops.elu; keras.ops.celu if width = alpha).
DTensor elu(const DTensor& x, double alpha = 1, double width = 1);
/// x Φ(x), Φ the standard normal CDF: exact, or the tanh approximation if `approximate`
/// (keras.ops.gelu).
DTensor gelu(const DTensor& x, bool approximate);
/// x where |x| > threshold, else 0 (keras.ops.hard_shrink).
DTensor hard_shrink(const DTensor& x, double threshold = 0.5);
/// min(max(x + 3, 0), 6) / 6 (keras.ops.hard_sigmoid).
DTensor hard_sigmoid(const DTensor& x);
/// x hard_sigmoid(x) (keras.ops.hard_silu, keras.ops.hard_swish).
DTensor hard_silu(const DTensor& x);
DTensor hard_swish(const DTensor& x);
/// min(max(x, -1), 1) (keras.ops.hard_tanh).
DTensor hard_tanh(const DTensor& x);
/// x for x > 0, else negative_slope · x (keras.ops.leaky_relu).
DTensor leaky_relu(const DTensor& x, double negative_slope = 0.2);
/// log(1 / (1 + exp(-x))), exact for large |x| (keras.ops.log_sigmoid).
DTensor log_sigmoid(const DTensor& x);
/// x tanh(log(1 + exp(x))) (keras.activations.mish).
DTensor mish(const DTensor& x);
/// min(max(x, 0), 6); the gradient is 0 at both 0 and 6 (keras.ops.relu6).
DTensor relu6(const DTensor& x);
/// 1.0507 x for x > 0, else 1.0507 · 1.67326 (exp(x) - 1) (constants rounded here), which preserves
/// mean and variance (keras.ops.selu; Klambauer, 2017).
DTensor selu(const DTensor& x);
/// x sigmoid(x) (keras.ops.silu, keras.ops.swish).
DTensor silu(const DTensor& x);
DTensor swish(const DTensor& x);
/// sign(x) max(|x| - threshold, 0) (keras.ops.soft_shrink).
DTensor soft_shrink(const DTensor& x, double threshold = 0.5);
/// x / (1 + |x|) (keras.ops.softsign).
DTensor softsign(const DTensor& x);
/// 0 for x <= -1, (x + 1)² / 4 for -1 < x < 1, x for x >= 1 (keras.ops.sparse_plus).
DTensor sparse_plus(const DTensor& x);
/// min(max((x + 1) / 2, 0), 1) (keras.ops.sparse_sigmoid).
DTensor sparse_sigmoid(const DTensor& x);
/// (x + sqrt(x² + b)) / 2 (keras.ops.squareplus).
DTensor squareplus(const DTensor& x, double b = 4);
/// x - tanh(x) (keras.ops.tanh_shrink).
DTensor tanh_shrink(const DTensor& x);
/// x where x > threshold, else default_value (keras.ops.threshold).
DTensor threshold(const DTensor& x, double threshold, double default_value);

/// The first half of an axis times the sigmoid of the second; halves the axis' extent
/// (keras.ops.glu). A sharded axis is resharded by communication. Throws ShapeError for an odd
/// extent.
DTensor glu(const DTensor& x, int64_t axis = -1);

/// max(x - t, 0) along an axis, which maps small elements to 0 (keras.ops.sparsemax). With x sorted
/// in descending order and c its cumulative sums, k is the number of elements with k x_k > c_k - 1,
/// and t = (c_1 + … + c_k - 1) / k, as in Keras; Martins and Astudillo (2016) have
/// t = (c_k - 1) / k. A sharded axis is all-gathered.
DTensor sparsemax(const DTensor& x, int64_t axis = -1);

}  // namespace tessera::ops
