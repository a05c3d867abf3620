#pragma once

#include <utility>
#include <vector>

#include <tessera/framework/ops/internal/window_axis.hpp>

namespace tessera::ops {

/// The greatest number of each window, and where it lies: x (n, spatial…, c) with 1 or 2 spatial
/// axes -> values and positions (n, spatial'…, c), an int64 each: the row-major number of the cell
/// among x's spatial ones, the first of equal ones (tf.nn.max_pool_with_argmax). Padding never
/// wins. Sharded spatial axes fetch the rows that their windows read beyond them. Throws ShapeError
/// for what does not fit.
std::pair<DTensor, DTensor> max_pool_with_positions(const DTensor& x,
                                                    const std::vector<detail::WindowAxis>& axes);
/// The values alone (keras.ops.max_pool).
DTensor max_pool(const DTensor& x, const std::vector<detail::WindowAxis>& axes);

/// The mean of the cells of x in each window; padding does not count (keras.ops.average_pool).
/// Shapes and layouts as in max_pool; differentiable twice.
DTensor avg_pool(const DTensor& x, const std::vector<detail::WindowAxis>& axes);

}  // namespace tessera::ops
