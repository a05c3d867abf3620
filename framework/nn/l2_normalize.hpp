#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// x / max(‖x‖, 1e-7), the norm along one axis (keras.utils.normalize). One all-reduce if a mesh
/// dimension cuts that axis.
DTensor l2_normalize(const DTensor& x, int64_t axis);

}  // namespace tessera
