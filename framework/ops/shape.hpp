#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Reshards a value to another layout on its mesh; its gradient is brought back to x's layout.
/// Collective; free where it only slices. With `reshard_after_forward`, a tape saves x instead of
/// the all-gathered result, and repeats the relayout where the backward pass reads the result.
DTensor relayout(const DTensor& x, const Layout& layout, bool reshard_after_forward = false);
/// Reshards a value to the layout of `like` (tf.experimental.dtensor.relayout_like).
DTensor relayout_like(const DTensor& x, const DTensor& like);
/// Copies a value to another mesh; its gradient is copied back.
DTensor copy_to_mesh(const DTensor& x, const Layout& layout);
/// Returns x as a constant: no gradient passes through.
DTensor stop_gradient(const DTensor& x);

/// Gives the elements, in row-major order, another shape; one extent may be -1. Where axes merge,
/// the major one keeps its sharding and the mesh dimensions of the minor ones move to it by
/// all-to-all; where an axis splits, its sharding stays on the major part. Where shard borders
/// change, shards fetch the elements they lack. Partial sums, maxima and minima pass through.
DTensor reshape(const DTensor& x, const Shape& shape);
/// Merges all axes from `first` on into one.
DTensor flatten(const DTensor& x, int64_t first = 0);
DTensor expand_dims(const DTensor& x, int64_t axis);
/// Drops the given axes, which must have extent 1.
DTensor squeeze(const DTensor& x, const std::vector<int64_t>& axes);
/// Permutes the axes (default: reverses them). Sharding moves with the axes; partial sums, maxima
/// and minima pass through.
DTensor transpose(const DTensor& x, const std::vector<int64_t>& axes = {});
/// Broadcasts x to a shape by NumPy's rules.
DTensor broadcast_to(const DTensor& x, const Shape& shape);

/// Returns elements [begin, begin + size) of one axis; shards of that axis fetch what they lack.
DTensor slice(const DTensor& x, int64_t axis, int64_t begin, int64_t size);
/// Adds `before` and `after` elements of `value` at the ends of an axis; neither may be negative.
DTensor pad(const DTensor& x, int64_t axis, int64_t before, int64_t after, double value = 0);
/// Joins tensors along an axis; partial sums, maxima or minima over the same dimensions in all of
/// them pass through.
DTensor concat(const std::vector<DTensor>& tensors, int64_t axis = 0);
/// Splits an axis into `sections` equal parts.
std::vector<DTensor> split(const DTensor& x, int64_t sections, int64_t axis = 0);
/// Joins tensors of one shape along a new axis (stack), or splits an axis into its entries
/// (unstack). Other axes keep their sharding; unstack all-gathers a sharded `axis` first. In both,
/// partial sums, maxima and minima pass through.
DTensor stack(const std::vector<DTensor>& tensors, int64_t axis = 0);
std::vector<DTensor> unstack(const DTensor& x, int64_t axis = 0);
/// Repeats the tensor along each axis (tf.tile).
DTensor tile(const DTensor& x, const std::vector<int64_t>& repeats);

/// Reverses the elements along axes (default: all) (keras.ops.flip). Keeps the sharding: shards of
/// a reversed axis fetch what they lack. Partial sums, maxima and minima pass through.
DTensor flip(const DTensor& x, const std::vector<int64_t>& axes = {});
/// Rotates elements along axes by `shifts` positions; those moved past the end reappear at the
/// beginning (keras.ops.roll). Takes one shift for each axis, one for all, or several that add up
/// on one axis; without axes it rotates the elements in row-major order. Shards of a rolled axis
/// fetch what they lack. Partial sums, maxima and minima pass through. Throws ShapeError for other
/// numbers of shifts.
DTensor roll(const DTensor& x, const std::vector<int64_t>& shifts,
             const std::vector<int64_t>& axes = {});
/// Zeroes the elements of matrices (…, m, n) above (tril) or below (triu) diagonal k, which is k
/// columns right of the main diagonal (keras.ops.tril, keras.ops.triu). Keeps the layout, and
/// partial sums pass through; no communication. Throws ShapeError for fewer than two axes.
DTensor tril(const DTensor& x, int64_t k = 0);
DTensor triu(const DTensor& x, int64_t k = 0);

}  // namespace tessera::ops

namespace tessera {

using ops::copy_to_mesh;
using ops::relayout;
using ops::relayout_like;

}  // namespace tessera
