#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The intervals of one axis that are held: one per member of the group along the axis' mesh
/// dimensions, or one per shard of the layout.
struct AxisShards {
  int64_t axis = 0;
  std::vector<Interval> have;
};
/// Returns the intervals of the sharding's blocks along the axis, one per member.
AxisShards axis_shards(const Sharding& sharding, int64_t axis);
/// Returns the intervals of blocks of these groups along an axis, one per member.
std::vector<Interval> group_intervals(const Layout& layout, int64_t axis, int64_t extent,
                                      const Groups& groups);
/// Returns the intervals of the layout's shards along the axis.
AxisShards layout_shards(const Sharding& sharding, int64_t axis);

/// Returns the member that each local block of the sharding belongs to along an axis.
std::vector<int64_t> block_members(const Sharding& sharding, int64_t axis);

/// Gives member m along an axis the global interval `requested[m]`, which may be any: overlapping,
/// beyond neighbours, past the ends (filled with `fill`), or empty. `blocks` belong to `sharding`
/// and cover `shards.have` along the axis (not necessarily the sharding's own intervals). Returns a
/// view where one block covers the interval. Collective; sends only what is missing.
///
/// `shards.have` and `requested` may both be given per shard of the layout; a block of several
/// shards then receives the hull of their intervals. Only then is the log independent of block
/// merging.
Blocks gather_intervals(const Sharding& sharding, const Blocks& blocks, const AxisShards& shards,
                        const std::vector<Interval>& requested, double fill);
/// Gives the members along a DTensor's axis the intervals `requested`. Resolves a partial sum
/// first.
Blocks gather_intervals(const DTensor& value, int64_t axis, const std::vector<Interval>& requested,
                        double fill = 0);

/// Computes the adjoint of gather_intervals(): `pieces` cover `requested`; each element is added to
/// the shard that owns it, and elements past the ends are dropped. float16 and bfloat16 are summed
/// in float32.
Blocks scatter_add_intervals(const Sharding& sharding, const Blocks& pieces,
                             const AxisShards& shards, const std::vector<Interval>& requested);

}  // namespace tessera::detail
