#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Axes [in_begin, in_end) of a reshape's input that hold the same elements as axes [out_begin,
/// out_end) of its output; as few axes as possible.
struct ReshapeGroup {
  int64_t in_begin = 0, in_end = 0;
  int64_t out_begin = 0, out_end = 0;
};

/// Returns the groups of a reshape. Throws ShapeError unless both shapes have the same number of
/// elements.
std::vector<ReshapeGroup> reshape_groups(const Shape& in, const Shape& out);

/// Runs ops::reshape without recording it.
DTensor reshape_value(const DTensor& x, const Shape& shape);

}  // namespace tessera::detail
