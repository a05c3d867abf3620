#include <tessera/framework/io/internal/shards_to_save.hpp>

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

/// Returns the coordinates of a group along each mesh dimension; all coordinates where the
/// dimension replicates.
std::vector<Interval> covered(const Sharding& sharding, const std::vector<int64_t>& group) {
  const Mesh& mesh = sharding.mesh();
  std::vector<Interval> ranges;
  for (int d = 0; d < mesh.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const bool shards = (sharding.layout.sharded_dims() >> d & 1U) != 0;
    // Of a view, only the coordinates that have devices.
    ranges.push_back(shards ? group_range(mesh.dim_size(d), sharding.groups[at], group[at])
                            : mesh.box()[at]);
  }
  return ranges;
}

/// Advances to the next group, last dimension fastest. Returns false after the last one.
bool advance(const Sharding& sharding, std::vector<int64_t>& group) {
  for (size_t d = group.size(); d-- > 0;) {
    const bool shards = (sharding.layout.sharded_dims() >> d & 1U) != 0;
    if (shards && ++group[d] < sharding.groups[d]) return true;
    group[d] = 0;
  }
  return false;
}

std::vector<int64_t> corner(const std::vector<Interval>& ranges) {
  std::vector<int64_t> lowest;
  for (const Interval& range : ranges) lowest.push_back(range.lo);
  return lowest;
}

/// Returns the processes that hold devices in `ranges`. Along sharding dimensions the first
/// coordinate stands for all.
std::vector<int> holders(const Mesh& mesh, const std::vector<Interval>& ranges, DimMask shards) {
  if (mesh.root().is_local()) return {0};
  std::set<int> ranks;
  std::vector<int64_t> at = corner(ranges);
  for (size_t d = at.size(); d > 0;) {
    ranks.insert(owner_of(mesh, mesh.id(at)));
    for (d = at.size(); d > 0; --d) {
      const bool fixed = (shards >> (d - 1) & 1U) != 0;
      if (!fixed && ++at[d - 1] < ranges[d - 1].hi) break;
      at[d - 1] = ranges[d - 1].lo;
    }
  }
  return {ranks.begin(), ranks.end()};
}

Tile tile_of(const Sharding& sharding, const std::vector<int64_t>& group) {
  const Mesh& mesh = sharding.mesh();
  const std::vector<Interval> ranges = covered(sharding, group);
  Tile tile;
  for (size_t axis = 0; axis < sharding.shape.size(); ++axis) {
    tile.intervals.push_back(
        axis_interval(sharding.layout, static_cast<int64_t>(axis), sharding.shape[axis], ranges));
  }
  tile.ranks = holders(mesh, ranges, sharding.layout.sharded_dims());
  std::vector<int64_t> lowest = corner(ranges);
  // The local replica may have other coordinates.
  const std::vector<Interval>& box = mesh.local_box();
  for (size_t d = 0; d < ranges.size() && !mesh.local_ids().empty(); ++d) {
    lowest[d] = std::clamp(lowest[d], box[d].lo, box[d].hi - 1);
  }
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (lowest[d] < ranges[d].lo || lowest[d] >= ranges[d].hi) return tile;
  }
  tile.block = sharding.block_of(lowest);
  return tile;
}

}  // namespace

Mesh mesh_of(const std::vector<Variable>& variables) {
  // Variables may be on several views, and all processes take part.
  return variables.empty() ? default_mesh() : variables.front().layout().mesh().root();
}

std::vector<Tile> tiles_of(const Sharding& sharding) {
  std::vector<Tile> tiles;
  std::vector<int64_t> group(sharding.groups.size(), 0);
  do {
    Tile tile = tile_of(sharding, group);
    const bool empty = std::any_of(tile.intervals.begin(), tile.intervals.end(),
                                   [](const Interval& i) { return i.empty(); });
    if (!empty) tiles.push_back(std::move(tile));
  } while (advance(sharding, group));
  return tiles;
}

Writers::Writers(const Mesh& mesh)
    : bytes_(mesh.root().is_local() ? 1 : static_cast<size_t>(communicator_of(mesh).size())) {}

int Writers::choose(const std::vector<int>& ranks, uint64_t bytes) {
  const int writer = *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
    return bytes_[static_cast<size_t>(a)] < bytes_[static_cast<size_t>(b)];
  });
  bytes_[static_cast<size_t>(writer)] += bytes;
  return writer;
}

Shape tile_begin(const std::vector<Interval>& intervals) {
  Shape begin;
  for (const Interval& interval : intervals) begin.push_back(interval.lo);
  return begin;
}

Shape tile_end(const std::vector<Interval>& intervals) {
  Shape end;
  for (const Interval& interval : intervals) end.push_back(interval.hi);
  return end;
}

Shape tile_shape(const std::vector<Interval>& intervals) {
  Shape shape;
  for (const Interval& interval : intervals) shape.push_back(interval.size());
  return shape;
}

}  // namespace tessera::detail
