#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns the gradient of take_along_axis with respect to its input, whose shape, dtype and layout
/// are `x`: dy (a…, m, b…), added into zeros (a…, n, b…) at `indices`. `axis` is not negative.
DTensor take_along_axis_gradient(const DTensor& dy, const DTensor& indices, int64_t axis,
                                 const Sharding& x);

}  // namespace tessera::detail
