#pragma once

#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Takes slices of x along an axis by index: x (a…, n, b…), indices (i…) of an integer dtype ->
/// (a…, i…, b…) (tf.gather). The indices and x's other axes keep their sharding. A sharded `axis`
/// is not all-gathered: each shard contributes the slices it holds, which leaves a partial sum. The
/// gradient of x is dense, sharded like x, and a partial sum over the dimensions that shard the
/// indices. Throws ConfigError for an index outside [0, n).
DTensor gather(const DTensor& x, const DTensor& indices, int64_t axis = 0);

/// Returns gather() with indices that count from the end if they are negative, by default of the
/// elements in row-major order (keras.ops.take). Throws ConfigError for an index outside [-n, n).
DTensor take(const DTensor& x, const DTensor& indices, std::optional<int64_t> axis = {});

/// Takes elements of x along an axis by index, with a row of indices for each row of x:
/// x (a…, n, b…), indices (a…, m, b…) of an integer dtype -> (a…, m, b…); other axes of extent 1
/// broadcast (keras.ops.take_along_axis). Indices in [-n, 0) count from the end. The other axes and
/// the indices' own axis keep their sharding. If x is sharded along `axis` it is not all-gathered:
/// each shard contributes the elements it holds, which leaves a partial sum. The gradient of x
/// accumulates repeated indices and is sharded like x. Indices whose axes after `axis` all have
/// extent 1 take entire rows. Throws ShapeError for shapes that do not fit, ConfigError for an
/// index outside [-n, n).
DTensor take_along_axis(const DTensor& x, const DTensor& indices, int64_t axis);

/// Takes rows of a table by id: table (v, d), ids (…) -> (…, d) (keras.layers.Embedding). Layouts,
/// communication and errors are those of gather along axis 0.
DTensor embedding(const DTensor& table, const DTensor& ids);

/// Returns `on` at each label and `off` elsewhere: labels (…) of an integer dtype -> (…, classes).
/// The row of a label outside [0, classes) is `off` throughout (tf.one_hot). No communication.
/// Throws ShapeError for a negative number of classes.
DTensor one_hot(const DTensor& labels, int64_t classes, at::ScalarType dtype = at::kFloat,
                double on = 1, double off = 0);

/// Returns 1 for each class among the labels of a row and 0 elsewhere: labels (k,) -> (classes,) or
/// (b, k) -> (b, classes) (keras.ops.multi_hot). Labels outside [0, classes) are ignored. Sharded
/// labels of a row leave a partial max. Throws ShapeError for another rank or rows without labels.
DTensor multi_hot(const DTensor& labels, int64_t classes, at::ScalarType dtype = at::kFloat);

/// Returns each value's insertion index in a sorted sequence (n,): the first index whose element is
/// not below the value (above it if `right`), or n; int64, of the values' shape
/// (keras.ops.searchsorted). Both inputs have the same dtype. NaN sorts last. A sharded sequence is
/// all-gathered; the values keep their sharding. Throws ShapeError unless the sequence has one
/// axis.
DTensor searchsorted(const DTensor& sorted_sequence, const DTensor& values, bool right = false);

/// Returns the number of each value's interval between ascending edges `bins` (n,), 0 below the
/// first and n from the last on: int64 (keras.ops.digitize). An interval includes its lower edge.
/// Integers are compared with floating edges in the edges' dtype. Layouts and errors are those of
/// searchsorted().
DTensor digitize(const DTensor& x, const DTensor& bins);

/// Returns whether each element of x is among the elements of `values`, or is not if `invert`: bool
/// (keras.ops.isin). Both have one dtype, but integers are compared with floats as floats. NaN is
/// among no values. The values are sorted and all-gathered; x keeps its sharding. No gradient.
DTensor isin(const DTensor& x, const DTensor& values, bool invert = false);

}  // namespace tessera::ops
