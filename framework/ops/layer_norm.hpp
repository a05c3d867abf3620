#pragma once

#include <tessera/framework/ops/reduce.hpp>

namespace tessera::ops {

/// (x - mean) / sqrt(variance + epsilon) · gamma + beta, with mean and biased variance over `axes`,
/// computed in float32 or wider (keras.ops.layer_normalization). gamma and beta have the extents of
/// the axes in ascending order; undefined ones are left out. Keeps shape, dtype and layout. If the
/// axes are the last ones and not sharded, this runs ATen's fused kernel without communication; a
/// sharded axis costs one all-reduce of both moments. Throws ShapeError for
/// shapes that do not fit, ConfigError unless all inputs have one floating dtype.
DTensor layer_norm(const DTensor& x, const DTensor& gamma = {}, const DTensor& beta = {},
                   const Axes& axes = {-1}, double epsilon = 1e-3);

/// (x - mean) / sqrt(variance + epsilon) · scale + offset, with given moments, scale and offset of
/// each element of an axis; undefined ones of the last two are left out
/// (keras.ops.batch_normalization). Computed in float32 or wider, in x's shape, dtype and layout.
/// Throws ShapeError unless the others are vectors of the axis' extent.
DTensor batch_normalization(const DTensor& x, const DTensor& mean, const DTensor& variance,
                            int64_t axis = -1, const DTensor& offset = {},
                            const DTensor& scale = {}, double epsilon = 1e-3);

/// x / sqrt(mean(x²) + epsilon) · scale, with the mean over `axes`, computed in float32 or wider
/// (keras.ops.rms_normalization). The scale is broadcast to x's shape; undefined, it is left out.
/// A sharded axis costs one all-reduce of the mean.
DTensor rms_normalization(const DTensor& x, const DTensor& scale = {}, const Axes& axes = {-1},
                          double epsilon = 1e-7);

}  // namespace tessera::ops
