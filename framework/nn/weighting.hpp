#pragma once

#include <utility>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// Two tensors whose ranks differ by one, made alike: a last axis of extent 1 is dropped from the
/// longer one, or added to a vector (Keras' squeeze_or_expand_to_same_rank). Others stay.
std::pair<DTensor, DTensor> match_ranks(DTensor a, DTensor b);

/// Throws ShapeError naming `where` unless sample weights of this shape broadcast to values.
void check_weights(const char* where, const Shape& values, const Shape& weights);

}  // namespace tessera
