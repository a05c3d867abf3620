#pragma once

#include <cstdint>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// How values between pixels are interpolated. Pixel i has its centre at i + 1/2.
enum class Interpolation : uint8_t { bilinear, bicubic, lanczos3, lanczos5 };

/// Resizes one axis to extent `size` by interpolation (tf.image.resize, one axis at a time). Pixels
/// beyond the ends have weight 0; the other weights are normalized to sum to 1. With `antialias`,
/// shrinking averages over all input pixels that an output pixel covers. Shards of the axis fetch
/// the pixels that they read from others. Twice differentiable. Throws ShapeError for a size below
/// 1 or an empty axis.
DTensor resample(const DTensor& x, int64_t axis, int64_t size, Interpolation method,
                 bool antialias = false);

}  // namespace tessera::ops
