#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Reshards a value to another layout on its mesh; its gradient is brought back to x's layout.
/// Collective; free where it only slices. With `reshard_after_forward`, a tape saves x instead of
/// the all-gathered result, and repeats the relayout where the backward pass reads the result.
DTensor relayout(const DTensor& x, const Layout& layout, bool reshard_after_forward = false);
/// Reshards several values, each to its layout, as relayout() does. Those that only need an
/// all-gather over the same mesh dimensions, in the same dtype, are gathered in one exchange, also
/// when a tape repeats it. Throws ConfigError unless there are as many layouts as values.
std::vector<DTensor> relayout(const std::vector<DTensor>& values,
                              const std::vector<Layout>& layouts,
                              bool reshard_after_forward = false);
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
/// Returns the part of a shape that begins at index `start` of each axis (keras.ops.slice).
DTensor slice(const DTensor& x, const std::vector<int64_t>& start, const Shape& shape);
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
/// Join tensors along axis 1, or 0 of vectors (hstack), along axis 0, vectors being rows (vstack),
/// or along axis 2, vectors (n,) being (1, n, 1) (dstack) (keras.ops.hstack, keras.ops.vstack,
/// keras.ops.dstack). Layouts are those of concat.
DTensor hstack(const std::vector<DTensor>& tensors);
DTensor vstack(const std::vector<DTensor>& tensors);
DTensor dstack(const std::vector<DTensor>& tensors);
/// Joins two tensors along an axis, or all their elements as a vector (keras.ops.append).
DTensor append(const DTensor& a, const DTensor& b, std::optional<int64_t> axis = std::nullopt);
/// Splits an axis into `sections` parts, of which the first are longer by one if they cannot be
/// equal, or before each of the elements `indices`, which are those of a Python slice
/// (keras.ops.array_split). Layouts are those of slice. Throws ShapeError for less than one
/// section.
std::vector<DTensor> array_split(const DTensor& x, int64_t sections, int64_t axis = 0);
std::vector<DTensor> array_split(const DTensor& x, const std::vector<int64_t>& indices,
                                 int64_t axis = 0);
/// Split axis 1, or 0 of a vector (hsplit), axis 0 (vsplit) or axis 2 (dsplit) into equal parts, or
/// before each of the elements `indices` (keras.ops.hsplit, keras.ops.vsplit, keras.ops.dsplit).
std::vector<DTensor> hsplit(const DTensor& x, int64_t sections);
std::vector<DTensor> hsplit(const DTensor& x, const std::vector<int64_t>& indices);
std::vector<DTensor> vsplit(const DTensor& x, int64_t sections);
std::vector<DTensor> vsplit(const DTensor& x, const std::vector<int64_t>& indices);
std::vector<DTensor> dsplit(const DTensor& x, int64_t sections);
std::vector<DTensor> dsplit(const DTensor& x, const std::vector<int64_t>& indices);
/// Returns the coordinates of a grid: for each vector a tensor of the grid's shape in which it is
/// repeated along the other vectors' axes (keras.ops.meshgrid). Vector i varies along axis i, but
/// with indexing "xy" the first two axes are exchanged. Throws ConfigError for another indexing
/// than "xy" and "ij".
std::vector<DTensor> meshgrid(const std::vector<DTensor>& vectors,
                              const std::string& indexing = "xy");
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

/// Exchanges two axes (keras.ops.swapaxes), or moves axes to other positions, in which the others
/// keep their order (keras.ops.moveaxis). Layouts are those of transpose. moveaxis throws
/// ShapeError unless source and destination name as many different axes.
DTensor swapaxes(const DTensor& x, int64_t axis1, int64_t axis2);
DTensor moveaxis(const DTensor& x, const std::vector<int64_t>& source,
                 const std::vector<int64_t>& destination);
/// Merges all axes into one (keras.ops.ravel).
DTensor ravel(const DTensor& x);
/// Rotates by k right angles in the plane of two axes, from the first towards the second
/// (keras.ops.rot90). Layouts and communication are those of transpose and flip. Throws ShapeError
/// for axes that are equal.
DTensor rot90(const DTensor& x, int64_t k = 1, std::pair<int64_t, int64_t> axes = {0, 1});
/// Reverses the elements of axis 1 (fliplr) or 0 (flipud) (keras.ops.fliplr, keras.ops.flipud).
DTensor fliplr(const DTensor& x);
DTensor flipud(const DTensor& x);
/// Repeats each element along an axis, or of ravel(x) (keras.ops.repeat): all equally often, with
/// the layouts of reshape, or each by its own count, with those of gather. Throws ShapeError for a
/// negative count, or as many counts as the axis has not.
DTensor repeat(const DTensor& x, int64_t repeats, std::optional<int64_t> axis = std::nullopt);
DTensor repeat(const DTensor& x, const std::vector<int64_t>& repeats,
               std::optional<int64_t> axis = std::nullopt);

/// Returns the matrix that has a vector on its diagonal k and is 0 elsewhere, or diagonal k of a
/// matrix (keras.ops.diag). A vector's sharding becomes that of the columns. Throws ShapeError for
/// other ranks.
DTensor diag(const DTensor& x, int64_t k = 0);
/// Returns diag() of all elements in row-major order (keras.ops.diagflat).
DTensor diagflat(const DTensor& x, int64_t k = 0);
/// Returns the diagonal of two axes, `offset` positions right of the main one, as a new last axis
/// (keras.ops.diagonal), or its sum (keras.ops.trace). If axis2 is sharded it leaves a partial sum;
/// the others keep their sharding. Throws ShapeError unless the axes differ.
DTensor diagonal(const DTensor& x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);
DTensor trace(const DTensor& x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1);

}  // namespace tessera::ops

namespace tessera {

using ops::copy_to_mesh;
using ops::relayout;
using ops::relayout_like;

}  // namespace tessera
