#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// exp(x) / sum(exp(x)) along an axis, stable for large values (keras.ops.softmax). Keeps shape,
/// dtype and layout. Communicates nothing unless `axis` is sharded, which costs an all-reduce of
/// the max and one of the sum, both of the other axes' shape. Throws ConfigError unless x is
/// floating-point.
DTensor softmax(const DTensor& x, int64_t axis = -1);

/// x - log(sum(exp(x))) along an axis; layouts and communication are those of softmax
/// (keras.ops.log_softmax).
DTensor log_softmax(const DTensor& x, int64_t axis = -1);

}  // namespace tessera::ops
