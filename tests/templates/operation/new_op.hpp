#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// factor · x². Shape, dtype and layout stay. No communication, but for a partial sum, which is
/// resolved. Throws ConfigError unless x is floating.
DTensor new_op(const DTensor& x, double factor);

}  // namespace tessera::ops
