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
/// per_device: none; the literal simulation of N devices. per_shard: replicas.
/// per_worker: replicas, and neighbouring shards or addends, one block for each worker thread.
enum class BlockPolicy : uint8_t { per_device, per_shard, per_worker };

/// The policy in force: the innermost BlockPolicyScope, else $TESSERA_BLOCKS, else per_worker.
BlockPolicy block_policy();

/// Sets this thread's block policy while alive.
class BlockPolicyScope {
 public:
  explicit BlockPolicyScope(BlockPolicy policy);

 private:
  ScopedValue<std::optional<BlockPolicy>> policy_;
};

/// Per mesh dimension, into how many contiguous groups its coordinates fall. A dimension with one
/// group does not tell blocks apart.
using Groups = std::vector<int64_t>;

/// The part of a tensor that one piece of memory holds.
struct BlockInfo {
  std::vector<int64_t> group;       ///< group coordinate per mesh dimension
  std::vector<Interval> intervals;  ///< global indices per tensor axis
  std::vector<int> devices;         ///< positions in Mesh::local_ids() that it stands for
  bool empty = false;               ///< some interval is empty
};

/// Shape, dtype, layout and block structure of a DTensor: all but its numbers. Shardings are
/// interned, so equal ones are one object and pointers compare.
struct Sharding {
  /// Is called by intern() alone, which makes equal ones one object.
  Sharding(const Shape& shape, at::ScalarType dtype, const Layout& layout, const Groups& groups);

  Shape shape;
  at::ScalarType dtype;
  Layout layout;
  Groups groups;
  std::vector<BlockInfo> blocks;  ///< those of this process

  /// Position in `blocks` of the block that holds the given device coordinates, -1 if elsewhere.
  int block_of(const std::vector<int64_t>& coordinates) const;
  const Mesh& mesh() const { return layout.mesh(); }
  int64_t bytes() const;

 private:
  std::vector<int64_t> first_;  ///< group range of this process, per mesh dimension
  std::vector<int64_t> count_;
};
using ShardingPtr = std::shared_ptr<const Sharding>;

/// Bytes of the largest shard.
double shard_bytes(const Shape& shape, at::ScalarType dtype, const Layout& layout);

/// The groups that the policy in force gives a layout. Every process of a mesh must have the same
/// policy and number of workers.
Groups groups_for(const Layout& layout);

/// Makes `groups` fine enough that each block of the layout is one interval per axis.
void refine(const Layout& layout, Groups& groups);

/// `groups` with those dimensions that the layout does not use set to one, unless every device has
/// a block of its own or the devices lie on several GPUs.
Groups used_groups(const Layout& layout, Groups groups);

/// The one Sharding with these parts.
ShardingPtr intern(const Shape& shape, at::ScalarType dtype, const Layout& layout,
                   const Groups& groups);
/// The one Sharding with these parts and the groups that the policy in force gives. Throws
/// LayoutError when the ranks differ.
ShardingPtr intern(const Shape& shape, at::ScalarType dtype, const Layout& layout);

/// Interval of one axis for coordinates [lo, hi) along each mesh dimension.
Interval axis_interval(const Layout& layout, int64_t axis, int64_t extent,
                       const std::vector<Interval>& coordinates);

/// Coordinates that group `index` of `groups` covers along a mesh dimension of `size`.
inline Interval group_range(int64_t size, int64_t groups, int64_t index) {
  return shard_interval(size, groups, index);
}

/// The group that holds a coordinate.
int64_t group_of(int64_t size, int64_t groups, int64_t coordinate);

}  // namespace tessera::detail
