#pragma once

#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Adds values into zeros by index: indices (i…, k) of an integer dtype name elements of the first
/// k axes of `shape`, values (i…, shape[k:]) -> shape (keras.ops.scatter, tf.scatter_nd). Values
/// with the same index add up; float16 and bfloat16 do so in float32. The values' last axes keep
/// their sharding; where the axes i… are sharded, the sum is reduced between devices. Throws
/// ShapeError for shapes that do not fit, ConfigError for bool values and for an index that is
/// negative or too large.
DTensor scatter(const DTensor& indices, const DTensor& values, const Shape& shape);

/// Replaces elements of x by index, x[indices] = updates: indices (i…, k), updates
/// (i…, x.shape[k:]) -> x's shape (keras.ops.scatter_update). The last update of an element counts,
/// in row-major order of the indices. With `reduction` "add", "max" or "min", all updates of an
/// element are combined with it (Keras has "mul", too). Differentiable in x and in the updates that
/// count. Layouts and errors are those of scatter().
DTensor scatter_update(const DTensor& x, const DTensor& indices, const DTensor& updates,
                       const std::string& reduction = "");

/// Replaces the elements of x from `start` on by `updates`, which has x's rank
/// (keras.ops.slice_update). Shards of an axis that is updated in part fetch what they lack. Throws
/// ShapeError unless the updates are inside x.
DTensor slice_update(const DTensor& x, const std::vector<int64_t>& start, const DTensor& updates);

}  // namespace tessera::ops
