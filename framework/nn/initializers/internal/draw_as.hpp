#pragma once

#include <tessera/framework/ops/elementwise.hpp>

namespace tessera::detail {

/// What initializers draw: float32, or float64 widened from it; other dtypes are rounded from
/// float32.
template <class Draw>
DTensor draw_as(at::ScalarType dtype, const Draw& draw) {
  return dtype == at::kDouble ? draw(at::kDouble) : ops::cast(draw(at::kFloat), dtype);
}

}  // namespace tessera::detail
