#pragma once

#include <cstdint>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// How what lies between an image's cells is computed; a cell's centre is at 1/2.
enum class Interpolation : uint8_t { bilinear, bicubic, lanczos3, lanczos5 };

/// One axis brought to another extent by interpolation (tf.image.resize, an axis at a time). Cells
/// past the ends do not count; the weights of the others add up to 1. With `antialias` an axis that
/// shrinks is smoothed over all the cells that one of the result stands for. A sharded axis fetches
/// the cells that its own need. Differentiable twice. Throws ShapeError for an extent below 1 or an
/// axis without cells.
DTensor resample(const DTensor& x, int64_t axis, int64_t size, Interpolation how,
                 bool antialias = false);

}  // namespace tessera::ops
