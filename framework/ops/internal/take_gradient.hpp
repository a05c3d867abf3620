#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The gradient, of the form `x`, of what take_along_axis took: dy (a…, m, b…) added into zeros
/// (a…, n, b…) at `indices`, in x's shards. `axis` is not negative.
DTensor take_along_axis_gradient(const DTensor& dy, const DTensor& indices, int64_t axis,
                                 const Sharding& x);

}  // namespace tessera::detail
