#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Slices of x along an axis, by number: x (a…, n, b…), indices (i…) of an integer dtype ->
/// (a…, i…, b…) (tf.gather). Sharding of the indices and of x's other axes passes on. A sharded
/// axis is not gathered: each shard gives the slices it holds, which leaves a sum pending. The
/// gradient of x is dense, in x's shards, pending over what cuts the indices. Throws ConfigError
/// for an index outside [0, n).
DTensor gather(const DTensor& x, const DTensor& indices, int64_t axis = 0);

/// Elements of x along an axis, by number, a row of indices for each row of x: x (a…, n, b…),
/// indices (a…, m, b…) of an integer dtype -> (a…, m, b…); of the other axes, those of extent 1
/// broadcast (keras.ops.take_along_axis). Numbers in [-n, 0) count from the end. Sharding of the
/// other axes and of the indices' own passes on; a sharded axis of x is not gathered: each shard
/// gives the elements it holds, which leaves a sum pending. The gradient of x adds up, in x's
/// shards. Indices of extent 1 behind the axis take whole rows. Throws ShapeError for shapes that
/// do not fit, ConfigError for a number outside [-n, n).
DTensor take_along_axis(const DTensor& x, const DTensor& indices, int64_t axis);

/// Rows of a table by number: table (v, d), ids (…) -> (…, d) (keras.layers.Embedding). Layouts,
/// communication and errors as gather along axis 0.
DTensor embedding(const DTensor& table, const DTensor& ids);

/// `on` at each label, `off` elsewhere: labels (…) of an integer dtype -> (…, classes); a row of a
/// label outside [0, classes) is `off` throughout (tf.one_hot). No communication. Throws ShapeError
/// for a negative number of classes.
DTensor one_hot(const DTensor& labels, int64_t classes, at::ScalarType dtype = at::kFloat,
                double on = 1, double off = 0);

/// Where each value belongs in a sorted sequence (n,): the first place whose element is not below
/// it, with `right` the first whose element is above it, n if there is none; int64, of the values'
/// shape (keras.ops.searchsorted; with `right` keras.ops.digitize). Both have one dtype. NaN
/// belongs behind all. A sharded sequence is gathered; the values' sharding passes on. Throws
/// ShapeError unless the sequence has one axis.
DTensor searchsorted(const DTensor& sorted_sequence, const DTensor& values, bool right = false);

}  // namespace tessera::ops
