#pragma once

#include <cstdint>
#include <functional>

#include <tessera/framework/io/format/checkpoint_grid.hpp>

namespace tessera::detail {

/// Bytes that two rectangles of one tensor have in common and that lie together in both, each being
/// stored by itself, row-major, in elements of so many bytes.
struct CommonRun {
  uint64_t source;  ///< from the beginning of the first rectangle's bytes
  uint64_t target;  ///< from the beginning of the second one's
  uint64_t bytes;
};

/// All that `from` and `to` have in common, in the order of the elements.
void for_each_run(const Rectangle& from, const Rectangle& to, uint64_t element,
                  const std::function<void(const CommonRun&)>& each);

/// The rectangle of a whole tensor.
Rectangle whole(const Shape& shape);

}  // namespace tessera::detail
