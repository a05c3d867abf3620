#pragma once

#include <tessera/framework/ops/elementwise.hpp>

namespace tessera::detail {

/// Draws in float32, or in float64 (widened from float32) if `dtype` is float64; other dtypes are
/// cast from float32.
template <class Draw>
DTensor draw_as(at::ScalarType dtype, const Draw& draw) {
  return dtype == at::kDouble ? draw(at::kDouble) : ops::cast(draw(at::kFloat), dtype);
}

}  // namespace tessera::detail
