#pragma once

#include <tessera/framework/ops/reduce.hpp>

namespace tessera::ops {

/// (x - mean) / sqrt(variance + epsilon) · gamma + beta, with mean and biased variance over `axes`,
/// computed in float32 or wider (keras.ops.layer_normalization). gamma and beta have the extents of
/// the axes in ascending order; undefined ones are left out. Keeps shape, dtype and layout. If the
/// axes are the last ones and not sharded, this runs ATen's fused kernel without communication; a
/// sharded axis costs one all-reduce for each moment, of the moment's shape. Throws ShapeError for
/// shapes that do not fit, ConfigError unless all inputs have one floating dtype.
DTensor layer_norm(const DTensor& x, const DTensor& gamma = {}, const DTensor& beta = {},
                   const Axes& axes = {-1}, double epsilon = 1e-3);

}  // namespace tessera::ops
