#pragma once

#include <tessera/framework/ops/reduce.hpp>

namespace tessera::ops {

/// (x - mean) / sqrt(variance + epsilon) · gamma + beta, mean and biased variance over the axes at
/// each index of the others, at least in float32 (keras.ops.layer_normalization). gamma and beta
/// have the extents of the axes in ascending order; undefined ones are left out. Shape, dtype and
/// layout stay. ATen's fused kernel does it, at no cost, where the axes are the last ones and
/// nothing cuts them; over the mesh dimensions that cut one of them each moment costs a pending sum
/// of its shape. Throws ShapeError for what does not fit, ConfigError for dtypes.
DTensor layer_norm(const DTensor& x, const DTensor& gamma = {}, const DTensor& beta = {},
                   const Axes& axes = {-1}, double epsilon = 1e-3);

}  // namespace tessera::ops
