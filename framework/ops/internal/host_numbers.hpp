#pragma once

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

/// Returns what make() computes on the host, in a dtype and a layout. A plan needs the shape only,
/// and its extents may be larger than memory: there the numbers are zeros, and make() is not
/// called, unless the plan's listener keeps them.
template <class Make>
DTensor host_numbers(const Shape& shape, at::ScalarType dtype, const Layout& layout,
                     const Make& make) {
  const bool kept = tracer() && tracer()->keeps_numbers();
  if (is_abstract() && !kept) return filled(shape, 0, dtype, layout);
  return pack(make().to(dtype), layout);
}

}  // namespace tessera::detail
