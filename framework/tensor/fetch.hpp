#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// The shards along one axis of a sharding, as this process's blocks cut them: member m of the group
/// of the axis' mesh dimensions holds global interval `have[m]`.
struct AxisShards {
  int64_t axis = 0;
  std::vector<Interval> have;
};
AxisShards axis_shards(const Sharding& sharding, int64_t axis);

/// Member of each local block of the sharding, along an axis.
std::vector<int64_t> block_members(const Sharding& sharding, int64_t axis);

/// Gives member m along an axis the global interval `wanted[m]`, wherever it lies: overlapping,
/// beyond neighbours, past the ends (filled with `fill`), or empty. `blocks` belong to `sharding`
/// and cover `shards.have` along the axis (which need not be the sharding's own intervals). A view
/// where one block covers it. Collective; moves only what is missing.
Blocks fetch(const Sharding& sharding, const Blocks& blocks, const AxisShards& shards,
             const std::vector<Interval>& wanted, double fill);
/// Of a DTensor's axis. Resolves a pending reduction first.
Blocks fetch(const DTensor& value, int64_t axis, const std::vector<Interval>& wanted,
             double fill = 0);

/// The adjoint: `pieces` cover `wanted` as fetch() gave them; every element is added to the shard
/// that owns it, and what lies past the ends is dropped.
Blocks fetch_add(const Sharding& sharding, const Blocks& pieces, const AxisShards& shards,
                 const std::vector<Interval>& wanted);

}  // namespace tessera
