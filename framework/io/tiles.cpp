#include <tessera/framework/io/tiles.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/comm/communicator.hpp>

namespace tessera {
namespace {

/// The coordinates of a group along every mesh dimension. Where a dimension holds replicas: all.
std::vector<Interval> covered(const Sharding& sharding, const std::vector<int64_t>& group) {
  const Mesh& mesh = sharding.mesh();
  std::vector<Interval> ranges;
  for (int d = 0; d < mesh.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const bool shards = (sharding.layout.sharded_dims() >> d & 1U) != 0;
    ranges.push_back(shards ? group_range(mesh.dim_size(d), sharding.groups[at], group[at])
                            : Interval{0, mesh.dim_size(d)});
  }
  return ranges;
}

/// Steps to the next group, the last dimension fastest; false after the last one.
bool advance(const Sharding& sharding, std::vector<int64_t>& group) {
  for (size_t d = group.size(); d-- > 0;) {
    const bool shards = (sharding.layout.sharded_dims() >> d & 1U) != 0;
    if (shards && ++group[d] < sharding.groups[d]) return true;
    group[d] = 0;
  }
  return false;
}

Tile tile_of(const Sharding& sharding, const std::vector<int64_t>& group) {
  const Mesh& mesh = sharding.mesh();
  const std::vector<Interval> ranges = covered(sharding, group);
  Tile tile;
  for (size_t axis = 0; axis < sharding.shape.size(); ++axis) {
    tile.intervals.push_back(axis_interval(sharding.layout, static_cast<int64_t>(axis),
                                           sharding.shape[axis], ranges));
  }
  std::vector<int64_t> lowest;
  for (const Interval& range : ranges) lowest.push_back(range.lo);
  const int64_t ranks = mesh.is_local() ? 1 : communicator_of(mesh).size();
  tile.rank = static_cast<int>(group_of(mesh.size(), ranks, mesh.id(lowest)));
  // Replicas of other coordinates may be the ones that are here.
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

std::vector<at::Tensor> collect_tiles(const DTensor& value, const std::vector<Tile>& tiles) {
  const c10::InferenceMode inference;
  Communicator& communicator = communicator_of(value.mesh());
  const int rank = value.mesh().is_local() ? 0 : communicator.rank();
  std::vector<at::Tensor> collected;
  for (const Tile& tile : tiles) {
    at::Tensor here;
    if (tile.rank == rank) {
      here = value.blocks()[static_cast<size_t>(tile.block)].cpu().contiguous();
      if (rank != 0) wait(communicator.send(0, here));
    }
    if (rank == 0 && tile.rank != 0) {
      here = at::empty(tile_shape(tile.intervals), at::TensorOptions().dtype(value.dtype()));
      wait(communicator.recv(tile.rank, here));
    }
    collected.push_back(rank == 0 ? here : at::Tensor());
  }
  return collected;
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

}  // namespace tessera
