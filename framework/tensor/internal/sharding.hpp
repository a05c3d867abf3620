#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// Which devices of a process share one block.
/// per_device: none; simulates N devices literally. per_shard: replicas.
/// per_worker: replicas, and neighbouring shards or partial sums; one block per worker thread.
enum class BlockPolicy : uint8_t { per_device, per_shard, per_worker };

/// Returns the policy in force: per_device in a WorldSizeInvariantScope, else the innermost
/// BlockPolicyScope's, else $TESSERA_BLOCKS, else per_worker.
BlockPolicy block_policy();

/// Sets this thread's block policy while alive.
class BlockPolicyScope {
 public:
  explicit BlockPolicyScope(BlockPolicy policy);

 private:
  ScopedValue<std::optional<BlockPolicy>> policy_;
};

/// The number of contiguous groups of coordinates along each mesh dimension. Blocks do not differ
/// along a dimension with one group.
using Groups = std::vector<int64_t>;

/// A block of a tensor, held in one piece of memory.
struct BlockInfo {
  std::vector<int64_t> group;       ///< group coordinate per mesh dimension
  std::vector<Interval> intervals;  ///< global indices per tensor axis
  std::vector<int> devices;         ///< indices into Mesh::local_ids() that it stands for
  bool empty = false;               ///< whether some interval is empty
};

/// Shape, dtype, layout and block structure of a DTensor: all but its data. Shardings are interned:
/// equal ones are one object and are compared by address.
struct Sharding {
  /// Called by intern() only.
  Sharding(const Shape& shape, at::ScalarType dtype, const Layout& layout, const Groups& groups);

  Shape shape;
  at::ScalarType dtype;
  Layout layout;
  Groups groups;
  std::vector<BlockInfo> blocks;  ///< this process's blocks

  /// Returns the index in `blocks` of the block that stands for the device at these coordinates;
  /// -1 if it is in another process.
  int block_of(const std::vector<int64_t>& coordinates) const;
  const Mesh& mesh() const { return layout.mesh(); }
  int64_t bytes() const;

 private:
  std::vector<int64_t> first_;  ///< group range of this process, per mesh dimension
  std::vector<int64_t> count_;
};
using ShardingPtr = std::shared_ptr<const Sharding>;

/// Returns the bytes of the largest shard.
double shard_bytes(const Shape& shape, at::ScalarType dtype, const Layout& layout);

/// Returns the groups of a layout under the policy in force. Every process of a mesh must have the
/// same policy and number of workers.
Groups groups_for(const Layout& layout);

/// Makes `groups` fine enough that each block of the layout is one interval per axis.
void refine(const Layout& layout, Groups& groups);

/// Returns `groups` with one group along dimensions that the layout does not use. Exceptions: under
/// per_device every device keeps its own block, and on several GPUs `groups` stays unchanged.
Groups used_groups(const Layout& layout, Groups groups);

/// Returns the unique Sharding with these properties.
ShardingPtr intern(const Shape& shape, at::ScalarType dtype, const Layout& layout,
                   const Groups& groups);
/// Returns the unique Sharding with these properties and the groups of the policy in force. Throws
/// LayoutError when the ranks differ.
ShardingPtr intern(const Shape& shape, at::ScalarType dtype, const Layout& layout);

/// Returns the interval of one axis for coordinates [lo, hi) along each mesh dimension.
Interval axis_interval(const Layout& layout, int64_t axis, int64_t extent,
                       const std::vector<Interval>& coordinates);

/// Returns the coordinates of group `index` of `groups` along a mesh dimension of `size`.
inline Interval group_range(int64_t size, int64_t groups, int64_t index) {
  return shard_interval(size, groups, index);
}

/// Returns the index of the group that contains a coordinate.
int64_t group_of(int64_t size, int64_t groups, int64_t coordinate);

}  // namespace tessera::detail
