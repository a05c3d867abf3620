#include "tests/support/layouts.hpp"

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/random.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/difference.hpp"

namespace tessera::test {

using namespace detail;

namespace {

using Axes = std::vector<std::vector<int>>;

std::vector<Axes> all_axes(int dims, int64_t rank) {
  if (dims == 0) return {Axes(static_cast<size_t>(rank))};
  std::vector<Axes> list;
  for (const Axes& axes : all_axes(dims - 1, rank)) {
    list.push_back(axes);
    for (size_t a = 0; a < axes.size(); ++a) {
      for (size_t position = 0; position <= axes[a].size(); ++position) {
        Axes more = axes;
        more[a].insert(more[a].begin() + static_cast<int64_t>(position), dims - 1);
        list.push_back(std::move(more));
      }
    }
  }
  return list;
}

/// The partial sums of the devices at each coordinate along the partial dimensions.
struct Addends {
  Shape shape;
  Layout layout;
  int64_t seed;
  at::ScalarType dtype;

  bool absent(int64_t index) const { return (index + seed) % 3 == 1; }

  /// Reduces the partial sums of all coordinates in `range`; undefined if all are absent.
  at::Tensor reduced(const std::vector<Interval>& range) const {
    at::Tensor total;
    const Mesh& mesh = layout.mesh();
    std::vector<bool> seen(static_cast<size_t>(mesh.size()));
    for (int64_t id = 0; id < mesh.size(); ++id) {
      const std::vector<int64_t> at = mesh.coordinates(id);
      int64_t index = 0;
      bool inside = true;
      for (int d = 0; d < mesh.rank(); ++d) {
        if (!(layout.partial_dims() >> d & 1)) continue;
        const size_t i = static_cast<size_t>(d);
        index = index * mesh.dim_size(d) + at[i];
        inside = inside && at[i] >= range[i].lo && at[i] < range[i].hi;
      }
      if (!inside || seen[static_cast<size_t>(index)] || absent(index)) continue;
      seen[static_cast<size_t>(index)] = true;
      const at::Tensor one = small_integers(shape, 100 * seed + index, dtype);
      if (total.defined()) {
        reduce_into(layout.partial_kind(), total, one);
      } else {
        total = one;
      }
    }
    return total;
  }
};

}  // namespace

std::vector<Layout> all_layouts(const Mesh& mesh, int64_t rank) {
  std::vector<Layout> list;
  for (const Axes& axes : all_axes(mesh.rank(), rank)) {
    list.push_back(Layout::from_axes(mesh, axes));
  }
  return list;
}

std::vector<Layout> pending_layouts(const Mesh& mesh, int64_t rank, Reduce kind) {
  std::vector<Layout> list;
  for (const Layout& layout : all_layouts(mesh, rank)) {
    for (DimMask dims = 1; dims < DimMask{1} << mesh.rank(); ++dims) {
      if (!(layout.sharded_dims() & dims)) list.push_back(layout.with_partial(dims, kind));
    }
  }
  return list;
}

at::Tensor small_integers(const Shape& shape, int64_t seed, at::ScalarType dtype) {
  const at::Tensor numbers = at::empty(shape, at::kFloat);
  std::vector<Interval> all;
  for (int64_t n : shape) all.push_back({0, n});
  if (numbers.numel() > 0) {
    stateless_uniform({seed, 7}, shape, all, -8, 9, numbers.data_ptr<float>());
  }
  return numbers.floor().to(dtype);
}

at::Tensor cut(const at::Tensor& full, const std::vector<Interval>& intervals) {
  at::Tensor part = full;
  for (size_t a = 0; a < intervals.size(); ++a) {
    part = part.narrow(static_cast<int64_t>(a), intervals[a].lo, intervals[a].size());
  }
  return part;
}

TestValue test_value(const Shape& shape, const Layout& layout, int64_t seed, at::ScalarType dtype) {
  if (!layout.is_partial()) {
    const at::Tensor full = small_integers(shape, seed, dtype);
    return {pack(full, layout), full};
  }
  const Addends addends{shape, layout, seed, dtype};
  const ShardingPtr sharding = intern(shape, dtype, layout);
  std::vector<Interval> range;
  for (const auto& dim : layout.mesh().dims()) range.push_back({0, dim.second});
  at::Tensor full = addends.reduced(range);
  if (!full.defined()) full = reduce_identity(layout.partial_kind(), shape, dtype);
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    for (size_t d = 0; d < range.size(); ++d) {
      const int64_t size = layout.mesh().dim_size(static_cast<int>(d));
      range[d] = group_range(size, sharding->groups[d], block.group[d]);
    }
    at::Tensor addend = addends.reduced(range);
    if (addend.defined()) addend = cut(addend, block.intervals).clone();
    blocks.push_back(addend);
  }
  return {DTensor(sharding, blocks), full};
}

std::string wrong_shards(const DTensor& value, const at::Tensor& full) {
  const Mesh& mesh = value.mesh();
  for (size_t i = 0; i < mesh.local_ids().size(); ++i) {
    const std::vector<int64_t> at = mesh.coordinates(mesh.local_ids()[i]);
    std::vector<Interval> mine;
    for (int64_t a = 0; a < value.rank(); ++a) {
      int64_t shard = 0;
      for (int dim : value.layout().axis(a)) {
        shard = shard * mesh.dim_size(dim) + at[static_cast<size_t>(dim)];
      }
      mine.push_back(shard_interval(value.size(a), value.layout().num_shards(a), shard));
    }
    const std::string wrong = difference(value.local(static_cast<int>(i)), cut(full, mine));
    if (!wrong.empty()) {
      return str(value.layout().describe(), " of ", tessera::to_string(value.shape()),
                 " on device ", mesh.local_ids()[i], ": ", wrong);
    }
  }
  return "";
}

std::string to_string(BlockPolicy policy) {
  return policy == BlockPolicy::per_device  ? "per_device"
         : policy == BlockPolicy::per_shard ? "per_shard"
                                            : "per_worker";
}

}  // namespace tessera::test
