#pragma once

#include <cstdint>
#include <functional>

#include <tessera/framework/io/format/checkpoint_grid.hpp>

namespace tessera::detail {

/// Bytes that two rectangles of a tensor have in common and that are contiguous in both. Each
/// rectangle is stored by itself, row-major.
struct CommonRun {
  uint64_t source;  ///< offset in the first rectangle's bytes
  uint64_t target;  ///< offset in the second rectangle's bytes
  uint64_t bytes;
};

/// Calls `each` for all runs that `from` and `to` have in common, in the order of their elements of
/// `element` bytes.
void for_each_run(const Rectangle& from, const Rectangle& to, uint64_t element,
                  const std::function<void(const CommonRun&)>& each);

/// Returns the rectangle that covers a tensor.
Rectangle full_rectangle(const Shape& shape);

}  // namespace tessera::detail
