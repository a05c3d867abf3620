#include <tessera/framework/tensor/internal/stacked_sums.hpp>

#include <set>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {
namespace {

/// Returns the coordinates of the first device that a block stands for.
std::vector<int64_t> coordinates_of(const Mesh& mesh, const BlockInfo& block) {
  return mesh.coordinates(mesh.local_ids()[static_cast<size_t>(block.devices.front())]);
}

/// Returns the index of the block of `sharding` that stands for the first device of another block.
size_t block_with(const Sharding& sharding, const BlockInfo& block) {
  return static_cast<size_t>(sharding.block_of(coordinates_of(sharding.mesh(), block)));
}

/// Returns the index along the first axis that belongs to a block's first device.
int64_t index_of(const Layout& layout, const BlockInfo& block) {
  const std::vector<int64_t> coordinates = coordinates_of(layout.mesh(), block);
  int64_t index = 0;
  for (int d : layout.axis(0)) {
    index = index * layout.mesh().dim_size(d) + coordinates[static_cast<size_t>(d)];
  }
  return index;
}

}  // namespace

DTensor stacked_sums(const DTensor& sum) {
  const Sharding& from = *sum.sharding();
  const Mesh& mesh = from.mesh();
  std::vector<int> partial;
  for (int d = 0; d < mesh.rank(); ++d) {
    if (from.layout.partial_dims() & (DimMask{1} << d)) partial.push_back(d);
  }
  std::vector<std::vector<int>> axes = from.layout.axes();
  axes.insert(axes.begin(), partial);
  const Layout layout = Layout::from_axes(mesh, std::move(axes));
  Groups groups = from.groups;
  refine(layout, groups);
  Shape shape = from.shape;
  shape.insert(shape.begin(), mesh.size_of(from.layout.partial_dims()));
  const ShardingPtr to = intern(shape, from.dtype, layout, groups);
  Blocks blocks;
  std::set<size_t> taken;
  for (const BlockInfo& info : to->blocks) {
    const DeviceMemory::For memory(info.devices.front());
    blocks.push_back(at::zeros(extents(info.intervals), block_options(*to, info)));
    const size_t source = block_with(from, info);
    const at::Tensor& block = sum.blocks()[source];
    if (taken.insert(source).second && block.defined()) blocks.back()[0].copy_(block);
  }
  return DTensor(to, std::move(blocks));
}

DTensor unstacked_sums(const DTensor& stacked) {
  const Sharding& from = *stacked.sharding();
  const Mesh& mesh = from.mesh();
  std::vector<std::vector<int>> axes = from.layout.axes();
  DimMask partial = 0;
  Groups groups = from.groups;
  for (int d : axes[0]) {
    partial |= DimMask{1} << d;
    groups[static_cast<size_t>(d)] = mesh.dim_size(d);
  }
  axes.erase(axes.begin());
  const Layout layout = Layout::from_axes(mesh, std::move(axes), partial);
  const ShardingPtr to =
      intern({from.shape.begin() + 1, from.shape.end()}, from.dtype, layout, groups);
  Blocks blocks;
  for (const BlockInfo& info : to->blocks) {
    const DeviceMemory::For memory(info.devices.front());
    const size_t source = block_with(from, info);
    const int64_t first = from.blocks[source].intervals[0].lo;
    blocks.push_back(stacked.blocks()[source][index_of(from.layout, info) - first].clone());
  }
  return DTensor(to, std::move(blocks));
}

}  // namespace tessera::detail
