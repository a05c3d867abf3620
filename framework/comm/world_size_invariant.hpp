#pragma once

#include <tessera/framework/base/internal/scoped_value.hpp>

namespace tessera {

namespace detail {

/// Whether a WorldSizeInvariantScope is on in this thread.
bool world_size_invariant();

}  // namespace detail

/// While alive and `on`, what this thread computes on a mesh has the same bits on any number of
/// processes: every device has blocks of its own, each is computed by one thread, and devices'
/// values are summed by the balanced binary tree over their positions in the group. A custom loop
/// opens it around its steps; compile() has an option. Every process opens it. If not `on`, leaves
/// this thread as it is.
class WorldSizeInvariantScope {
 public:
  explicit WorldSizeInvariantScope(bool on = true);

 private:
  detail::ScopedValue<bool> invariant_;
};

}  // namespace tessera
