#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns x / max(‖x‖, epsilon), the norm over these axes (keras.ops.normalize).
/// Communication: one all-reduce, of one element per vector, if one of the axes is sharded.
DTensor l2_normalize(const DTensor& x, const std::vector<int64_t>& axes, double epsilon = 1e-7);
inline DTensor l2_normalize(const DTensor& x, int64_t axis) {
  return l2_normalize(x, std::vector<int64_t>{axis});
}

}  // namespace tessera::detail
