#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// The value under another layout of its mesh; recorded, the gradient comes back in the layout
/// that x has. Collective, free where it only slices. With `reshard_after_forward` a tape keeps x
/// in place of what was gathered, and moves it anew where the backward pass reads the result.
DTensor relayout(const DTensor& x, const Layout& layout, bool reshard_after_forward = false);
/// The value under the layout that `like` has (tf.experimental.dtensor.relayout_like).
DTensor relayout_like(const DTensor& x, const DTensor& like);
/// The value on another mesh; the gradient travels back.
DTensor copy_to_mesh(const DTensor& x, const Layout& layout);
/// The value as a constant: no gradient passes.
DTensor stop_gradient(const DTensor& x);

/// The elements in row-major order under another shape; one extent may be -1. Where axes merge, the
/// group's major axis keeps its sharding and the mesh dimensions of minor ones move onto it by
/// all-to-all; where an axis splits, its sharding stays on the major part. Shards whose borders
/// fall elsewhere fetch what they lack. Keeps pending reductions.
DTensor reshape(const DTensor& x, const Shape& shape);
/// All axes from `first` on merged into one.
DTensor flatten(const DTensor& x, int64_t first = 0);
DTensor expand_dims(const DTensor& x, int64_t axis);
/// Axes of extent 1 dropped.
DTensor squeeze(const DTensor& x, const std::vector<int64_t>& axes);
/// Axes in another order; default reversed. Sharding goes with the axes; keeps pending reductions.
DTensor transpose(const DTensor& x, const std::vector<int64_t>& axes = {});
/// NumPy's broadcast to a shape.
DTensor broadcast_to(const DTensor& x, const Shape& shape);

/// Elements [begin, begin + size) of one axis; a sharded axis fetches what each new shard lacks.
DTensor slice(const DTensor& x, int64_t axis, int64_t begin, int64_t size);
/// `before` and `after` elements of `value` added along an axis; negative counts are errors.
DTensor pad(const DTensor& x, int64_t axis, int64_t before, int64_t after, double value = 0);
/// Tensors joined along an axis; keeps reductions pending over the same dimensions in all.
DTensor concat(const std::vector<DTensor>& parts, int64_t axis = 0);
/// Equal parts of an axis.
std::vector<DTensor> split(const DTensor& x, int64_t parts, int64_t axis = 0);
/// Tensors of one shape along a new axis, and back. Other axes keep their sharding; one that is
/// taken apart is gathered first. Both keep pending reductions.
DTensor stack(const std::vector<DTensor>& parts, int64_t axis = 0);
std::vector<DTensor> unstack(const DTensor& x, int64_t axis = 0);
/// The tensor repeated along each axis (tf.tile).
DTensor tile(const DTensor& x, const std::vector<int64_t>& repeats);

/// Axes in reversed order; none: all (keras.ops.flip). Sharding stays: a sharded axis fetches what
/// each shard lacks. Keeps pending reductions.
DTensor flip(const DTensor& x, const std::vector<int64_t>& axes = {});
/// Elements moved along axes, by as many places as `shifts` says, those beyond the end to the
/// beginning (keras.ops.roll): one shift for each axis, one for all, or several that add up on one
/// axis. Without axes it moves the elements in row-major order. A sharded axis fetches what each
/// shard lacks. Keeps pending reductions. Throws ShapeError for other numbers of shifts.
DTensor roll(const DTensor& x, const std::vector<int64_t>& shifts,
             const std::vector<int64_t>& axes = {});
/// Matrices (…, m, n) with zeros above, and below, diagonal k, which lies k columns right of the
/// main one (keras.ops.tril, keras.ops.triu). Layout stays, pending sums too; no communication.
/// Throws ShapeError for fewer than two axes.
DTensor tril(const DTensor& x, int64_t k = 0);
DTensor triu(const DTensor& x, int64_t k = 0);

}  // namespace tessera::ops

namespace tessera {

using ops::copy_to_mesh;
using ops::relayout;
using ops::relayout_like;

}  // namespace tessera
