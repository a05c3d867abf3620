#include <tessera/framework/tensor/internal/sharding.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

BlockPolicy environment_policy() {
  const char* value = std::getenv("TESSERA_BLOCKS");
  if (!value || !*value) return BlockPolicy::per_worker;
  const std::string text = value;
  if (text == "per_device") return BlockPolicy::per_device;
  if (text == "per_shard") return BlockPolicy::per_shard;
  if (text == "per_worker") return BlockPolicy::per_worker;
  throw ConfigError("TESSERA_BLOCKS", "must be per_device, per_shard or per_worker",
                    "\"" + text + "\"", "set one of them or unset it");
}

Groups finest(const Mesh& mesh) {
  Groups groups;
  for (const auto& dim : mesh.dims()) groups.push_back(dim.second);
  return groups;
}

/// Whether a group has devices of this process on several GPUs.
bool splits_a_group(const Mesh& mesh, const Groups& groups) {
  std::map<std::vector<int64_t>, int> gpu_of;
  for (size_t i = 0; i < mesh.local_ids().size(); ++i) {
    std::vector<int64_t> group = mesh.coordinates(mesh.local_ids()[i]);
    for (size_t d = 0; d < group.size(); ++d) {
      group[d] = group_of(mesh.dim_size(static_cast<int>(d)), groups[d], group[d]);
    }
    const int gpu = mesh.local_devices()[i].index;
    if (gpu_of.try_emplace(group, gpu).first->second != gpu) return true;
  }
  return false;
}

/// Returns one group per worker, splitting the first dimensions first: their shards are the longest
/// contiguous runs of memory. A GPU is one worker. Does not merge shards unless all processes hold
/// boxes of one size, nor ever along the dimensions that a view fixes.
Groups worker_groups(const Mesh& mesh) {
  Groups groups = finest(mesh);
  if (!is_evenly_hosted(mesh)) return groups;
  int64_t workers = on_gpus(mesh) ? gpus_of(mesh) : worker_count();
  // A process that holds nothing of a view has the groups of those that do.
  const Mesh whole = mesh.root();
  for (size_t d = 0; d < groups.size(); ++d) {
    if (mesh.fixed_dims() >> d & 1) continue;
    const Interval box = whole.local_box()[d];
    const int64_t here = std::min(box.size(), workers);
    workers /= here;
    groups[d] = groups[d] / box.size() * here;
  }
  return on_gpus(mesh) && splits_a_group(mesh, groups) ? finest(mesh) : groups;
}

/// Whether all devices of this process share memory, so that one block may stand for any of them.
bool shares_memory(const Mesh& mesh) { return !on_gpus(mesh) || gpus_of(mesh) == 1; }

size_t hash_of(const Shape& shape, at::ScalarType dtype, const Layout& layout,
               const Groups& groups) {
  size_t hash = mix(layout.hash(), static_cast<size_t>(dtype));
  for (int64_t n : shape) hash = mix(hash, static_cast<size_t>(n));
  for (int64_t n : groups) hash = mix(hash, static_cast<size_t>(n));
  return hash;
}

BlockInfo make_block(const Sharding& sharding, const std::vector<int64_t>& group) {
  const Mesh& mesh = sharding.mesh();
  BlockInfo block;
  block.group = group;
  std::vector<Interval> range;
  for (size_t d = 0; d < group.size(); ++d) {
    const int64_t size = mesh.dim_size(static_cast<int>(d));
    range.push_back(group_range(size, sharding.groups[d], group[d]));
  }
  for (size_t a = 0; a < sharding.shape.size(); ++a) {
    block.intervals.push_back(
        axis_interval(sharding.layout, static_cast<int64_t>(a), sharding.shape[a], range));
    block.empty = block.empty || block.intervals.back().empty();
  }
  return block;
}

}  // namespace

BlockPolicy block_policy() {
  static const BlockPolicy from_environment = environment_policy();
  if (world_size_invariant()) return BlockPolicy::per_device;
  return thread_state().block_policy.value_or(from_environment);
}

BlockPolicyScope::BlockPolicyScope(BlockPolicy policy)
    : policy_(thread_state().block_policy, policy) {}

int64_t group_of(int64_t size, int64_t groups, int64_t coordinate) {
  int64_t index = coordinate * groups / size;
  while (group_range(size, groups, index).hi <= coordinate) ++index;
  while (group_range(size, groups, index).lo > coordinate) --index;
  return index;
}

Interval axis_interval(const Layout& layout, int64_t axis, int64_t extent,
                       const std::vector<Interval>& coordinates) {
  int64_t first = 0, last = 0, shards = 1;
  for (int dim : layout.axis(axis)) {
    const int64_t size = layout.mesh().dim_size(dim);
    const Interval range = coordinates[static_cast<size_t>(dim)];
    first = first * size + range.lo;
    last = last * size + range.hi - 1;
    shards *= size;
  }
  return {shard_interval(extent, shards, first).lo, shard_interval(extent, shards, last).hi};
}

void refine(const Layout& layout, Groups& groups) {
  const Mesh& mesh = layout.mesh();
  for (const std::vector<int>& dims : layout.axes()) {
    // A block is one interval if at most one of the axis' dimensions is partly merged and the less
    // significant ones after it are fully merged.
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t d = static_cast<size_t>(dims[i]);
      if (groups[d] == mesh.dim_size(dims[i])) continue;
      bool later_split = false;
      for (size_t j = i + 1; j < dims.size(); ++j) {
        later_split = later_split || groups[static_cast<size_t>(dims[j])] > 1;
      }
      if (later_split) groups[d] = mesh.dim_size(dims[i]);
    }
  }
}

Groups used_groups(const Layout& layout, Groups groups) {
  if (block_policy() == BlockPolicy::per_device) return finest(layout.mesh());
  if (!shares_memory(layout.mesh())) return groups;
  for (size_t d = 0; d < groups.size(); ++d) {
    if (!(layout.used_dims() >> d & 1)) groups[d] = 1;
  }
  return groups;
}

Groups groups_for(const Layout& layout) {
  const Mesh& mesh = layout.mesh();
  const bool merge = block_policy() == BlockPolicy::per_worker;
  Groups groups = used_groups(layout, merge ? worker_groups(mesh) : finest(mesh));
  refine(layout, groups);
  return groups;
}

int Sharding::block_of(const std::vector<int64_t>& coordinates) const {
  int64_t index = 0;
  for (size_t d = 0; d < groups.size(); ++d) {
    const int64_t size = mesh().dim_size(static_cast<int>(d));
    const int64_t group = group_of(size, groups[d], coordinates[d]) - first_[d];
    if (group < 0 || group >= count_[d]) return -1;
    index = index * count_[d] + group;
  }
  return static_cast<int>(index);
}

int64_t Sharding::bytes() const {
  return numel(shape) * static_cast<int64_t>(c10::elementSize(dtype));
}

double shard_bytes(const Shape& shape, at::ScalarType dtype, const Layout& layout) {
  double bytes = static_cast<double>(c10::elementSize(dtype));
  for (int64_t a = 0; a < layout.rank(); ++a) {
    const int64_t extent = shape[static_cast<size_t>(a)], shards = layout.num_shards(a);
    bytes *= static_cast<double>((extent + shards - 1) / shards);
  }
  return bytes;
}

Sharding::Sharding(const Shape& shape_, at::ScalarType dtype_, const Layout& layout_,
                   const Groups& groups_)
    : shape(shape_), dtype(dtype_), layout(layout_), groups(groups_) {
  int64_t total = 1;
  for (size_t d = 0; d < groups.size(); ++d) {
    const int64_t size = mesh().dim_size(static_cast<int>(d));
    const Interval box = mesh().local_box()[d];
    first_.push_back(group_of(size, groups[d], box.lo));
    const bool none = box.empty();
    count_.push_back(none ? 0 : group_of(size, groups[d], box.hi - 1) - first_[d] + 1);
    total *= count_[d];
  }
  for (int64_t b = 0; b < total; ++b) {
    std::vector<int64_t> group(groups.size());
    int64_t rest = b;
    for (size_t d = groups.size(); d-- > 0;) {
      group[d] = first_[d] + rest % count_[d];
      rest /= count_[d];
    }
    blocks.push_back(make_block(*this, group));
  }
  for (size_t i = 0; i < mesh().local_ids().size(); ++i) {
    const int block = block_of(mesh().coordinates(mesh().local_ids()[i]));
    blocks[static_cast<size_t>(block)].devices.push_back(static_cast<int>(i));
  }
}

ShardingPtr intern(const Shape& shape, at::ScalarType dtype, const Layout& layout,
                   const Groups& groups) {
  if (is_abstract() && !(layout.mesh().root() == abstract_mesh())) {
    return intern(shape, dtype, abstract_layout(layout));
  }
  static std::mutex mutex;
  static std::unordered_multimap<size_t, std::weak_ptr<const Sharding>> table;
  static size_t sweep_at = 1024;
  const size_t hash = hash_of(shape, dtype, layout, groups);
  const std::lock_guard<std::mutex> lock(mutex);
  const auto range = table.equal_range(hash);
  for (auto it = range.first; it != range.second; ++it) {
    const ShardingPtr existing = it->second.lock();
    if (existing && existing->shape == shape && existing->dtype == dtype &&
        existing->groups == groups && existing->layout == layout) {
      return existing;
    }
  }
  if (table.size() >= sweep_at) {
    std::erase_if(table, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = 2 * table.size() + 1024;
  }
  const ShardingPtr made = std::make_shared<const Sharding>(shape, dtype, layout, groups);
  table.emplace(hash, made);
  return made;
}

ShardingPtr intern(const Shape& shape, at::ScalarType dtype, const Layout& layout) {
  if (!layout.defined() || layout.rank() != static_cast<int64_t>(shape.size())) {
    throw LayoutError("layout", "a layout names every axis of its tensor",
                      "layout " + layout.describe() + " for shape " + to_string(shape),
                      str("give it ", shape.size(), " entries"));
  }
  return intern(shape, dtype, layout, groups_for(layout));
}

}  // namespace tessera::detail
