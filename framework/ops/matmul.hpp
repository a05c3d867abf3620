#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Matrix product over the last two axes, leading axes broadcast: (…, m, k) · (…, k, n) -> (…, m,
/// n); `transpose_a` and `transpose_b` read an operand with its last two axes swapped. m and n keep
/// their sharding; a sharded k leaves a partial sum over its mesh dimensions. Throws ShapeError for
/// shapes that do not fit, ConfigError for different dtypes and bool.
DTensor matmul(const DTensor& a, const DTensor& b, bool transpose_a = false,
               bool transpose_b = false);

/// x · kernel + bias, followed by relu if `relu`: (…, m, k), (k, n) and (n,) -> (…, m, n). One
/// fused ATen operation if kernel and bias are Variables, x is floating-point with an unsharded k,
/// and fusing does not change the communication; otherwise matmul, add and relu, where the partial
/// sum over a sharded k is resolved before the bias is added. Throws ShapeError for shapes that do
/// not fit.
DTensor dense(const DTensor& x, const DTensor& kernel, const DTensor& bias, bool relu = false);

/// Einstein summation of one or two tensors, as in "bmk,kn->bmn"; a letter may appear only once in
/// an operand. Letters of the output keep their sharding; a sharded summed letter leaves a partial
/// sum. Throws ConfigError for two tensors of different dtypes or bool.
DTensor einsum(const std::string& equation, const std::vector<DTensor>& operands);

/// Products by NumPy's rules, as one einsum, whose layouts, communication and dtypes these have.
/// A product with a 0-d tensor is elementwise. All throw ShapeError for axes that do not fit.
///
/// dot sums over the last axis of a and the last but one of b (its only one if b has one axis)
/// (keras.ops.dot); inner over the last axis of both (keras.ops.inner); vdot over all elements,
/// whatever the shapes (keras.ops.vdot); outer multiplies each element of a with each of b:
/// (numel of a, numel of b) (keras.ops.outer).
DTensor dot(const DTensor& a, const DTensor& b);
DTensor inner(const DTensor& a, const DTensor& b);
DTensor vdot(const DTensor& a, const DTensor& b);
DTensor outer(const DTensor& a, const DTensor& b);
/// Sums over the last `axes` axes of a and the first of b, or over pairs of axes: the other axes of
/// a, then those of b remain (keras.ops.tensordot).
DTensor tensordot(const DTensor& a, const DTensor& b, int64_t axes = 2);
DTensor tensordot(const DTensor& a, const DTensor& b, const std::vector<int64_t>& axes_a,
                  const std::vector<int64_t>& axes_b);

/// Returns the cross products of vectors of three elements along an axis; other axes broadcast
/// (keras.ops.cross). Shards of the axis fetch the elements that they lack. Throws ShapeError for
/// other extents.
DTensor cross(const DTensor& a, const DTensor& b, int64_t axis = -1);
/// Returns the Kronecker product: each element of a times all of b, of the extents' products
/// (keras.ops.kron). Sharding of a's axes stays on the result's. The tensor of lower rank gets
/// leading axes.
DTensor kron(const DTensor& a, const DTensor& b);
/// Returns the powers of a vector's elements, one a row: (k,) -> (k, n), n = k by default, with
/// exponents n - 1, …, 0, or 0, …, n - 1 if `increasing` (keras.ops.vander). Keeps the vector's
/// sharding. Throws ShapeError unless x is a vector and n at least 1.
DTensor vander(const DTensor& x, std::optional<int64_t> n = std::nullopt, bool increasing = false);

}  // namespace tessera::ops
