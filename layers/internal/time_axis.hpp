#pragma once

#include <tessera/framework/base/shape.hpp>

namespace tessera::detail {

/// Returns the shape of a step of a sequence: (batch, time, …) without the time axis.
inline Shape step_of(Shape sequence) {
  sequence.erase(sequence.begin() + 1);
  return sequence;
}

}  // namespace tessera::detail
