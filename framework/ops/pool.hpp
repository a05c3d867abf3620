#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/framework/ops/window_axis.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Max pooling that also returns positions: x (n, spatial…, c) with 1 to 3 spatial axes -> values
/// and int64 positions, both (n, spatial'…, c). A position is the row-major index of the maximum
/// among x's spatial axes, the first one on ties (tf.nn.max_pool_with_argmax). Padding is never the
/// maximum. Shards of a spatial axis fetch the halo that their windows read. Throws ShapeError for
/// windows that do not fit x.
std::pair<DTensor, DTensor> max_pool_with_positions(const DTensor& x,
                                                    const std::vector<WindowAxis>& axes);
/// max_pool_with_positions() without the positions (keras.ops.max_pool).
DTensor max_pool(const DTensor& x, const std::vector<WindowAxis>& axes);

/// Average pooling; padding does not count towards the mean (keras.ops.average_pool). Shapes and
/// layouts are those of max_pool. Twice differentiable.
DTensor avg_pool(const DTensor& x, const std::vector<WindowAxis>& axes);

/// Max pooling to given extents: x (n, spatial…, c) with 1 to 3 spatial axes -> (n, sizes…, c)
/// (keras.ops.adaptive_max_pool). Along an axis of extent m, output i reads [floor(i · m / size),
/// ceil((i + 1) · m / size)). Layouts and communication are those of max_pool; an axis whose size
/// does not divide m is pooled size / gcd(size, m) times. Throws ShapeError for another rank, an
/// empty axis, or sizes below 1.
DTensor adaptive_max_pool(const DTensor& x, const std::vector<int64_t>& sizes);
/// Average pooling to given extents, in the windows of adaptive_max_pool
/// (keras.ops.adaptive_average_pool). Twice differentiable.
DTensor adaptive_avg_pool(const DTensor& x, const std::vector<int64_t>& sizes);

}  // namespace tessera::ops
