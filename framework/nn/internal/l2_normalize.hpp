#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// x / max(‖x‖, epsilon), the norm over these axes (keras.ops.normalize). One all-reduce of a
/// number for each vector if a mesh dimension cuts one of them.
DTensor l2_normalize(const DTensor& x, const std::vector<int64_t>& axes, double epsilon = 1e-7);
inline DTensor l2_normalize(const DTensor& x, int64_t axis) {
  return l2_normalize(x, std::vector<int64_t>{axis});
}

}  // namespace tessera::detail
