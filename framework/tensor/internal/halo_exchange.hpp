#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Intervals along one axis that the members of the group of its mesh dimensions hold; or, one for
/// each shard of the layout, that the single shards hold.
struct AxisShards {
  int64_t axis = 0;
  std::vector<Interval> have;
};
/// The intervals into which this process's blocks cut the axis.
AxisShards axis_shards(const Sharding& sharding, int64_t axis);
/// The intervals into which blocks of these groups cut an axis.
std::vector<Interval> group_intervals(const Layout& layout, int64_t axis, int64_t extent,
                                      const Groups& groups);
/// The intervals into which the layout cuts the axis, one for each of its shards.
AxisShards layout_shards(const Sharding& sharding, int64_t axis);

/// Member of each local block of the sharding, along an axis.
std::vector<int64_t> block_members(const Sharding& sharding, int64_t axis);

/// Gives member m along an axis the global interval `wanted[m]`, wherever it lies: overlapping,
/// beyond neighbours, past the ends (filled with `fill`), or empty. `blocks` belong to `sharding`
/// and cover `shards.have` along the axis (which need not be the sharding's own intervals). A view
/// where one block covers it. Collective; moves only what is missing.
///
/// `shards.have` and `wanted` may both be given for each shard of the layout; a block of several
/// shards then covers all that they want. Only so does a log not depend on how shards are merged.
Blocks gather_intervals(const Sharding& sharding, const Blocks& blocks, const AxisShards& shards,
                        const std::vector<Interval>& wanted, double fill);
/// Gives the members along a DTensor's axis the intervals `wanted`. Resolves a pending reduction
/// first.
Blocks gather_intervals(const DTensor& value, int64_t axis, const std::vector<Interval>& wanted,
                        double fill = 0);

/// The adjoint: `pieces` cover `wanted` as gather_intervals() gave them; every element is added to
/// the shard that owns it, and what lies past the ends is dropped. Half types are added up in
/// float32.
Blocks scatter_add_intervals(const Sharding& sharding, const Blocks& pieces,
                             const AxisShards& shards, const std::vector<Interval>& wanted);

}  // namespace tessera::detail
