#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Axes [in_begin, in_end) of the input that hold the same elements as [out_begin, out_end) of the
/// output of a reshape; as few as can be together.
struct ReshapeGroup {
  int64_t in_begin = 0, in_end = 0;
  int64_t out_begin = 0, out_end = 0;
};

/// Throws ShapeError unless the shapes hold equally many elements.
std::vector<ReshapeGroup> reshape_groups(const Shape& in, const Shape& out);

/// ops::reshape, unrecorded.
DTensor reshape_value(const DTensor& x, const Shape& shape);

}  // namespace tessera::detail
