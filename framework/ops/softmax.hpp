#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// exp(x) / sum(exp(x)) along an axis, stable for large values (keras.ops.softmax). Shape, dtype
/// and layout stay. An axis that is not sharded costs no communication; a sharded one stays so, for
/// a pending max and a pending sum of the other axes' shape. Throws ConfigError unless x is
/// floating.
DTensor softmax(const DTensor& x, int64_t axis = -1);

/// x - log(sum(exp(x))) along an axis; layouts and communication as softmax
/// (keras.ops.log_softmax).
DTensor log_softmax(const DTensor& x, int64_t axis = -1);

}  // namespace tessera::ops
