#include <tessera/framework/tensor/internal/bucket.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/tree_reduce.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/relayout_step.hpp>

namespace tessera::detail {
bool all_finite(const at::Tensor& tensor) {
  // A sum is one cheap pass, but the sum of finite numbers may overflow.
  return std::isfinite(at::sum(tensor).item<double>()) || at::isfinite(tensor).all().item<bool>();
}

Bucket::Key Bucket::key_of(const DTensor& value) {
  const Sharding& sharding = *value.sharding();
  const Layout& layout = sharding.layout;
  // The groups that a relayout would use: the value may have been made under another block policy.
  Groups groups = used_groups(layout, sharding.groups);
  refine(layout, groups);
  return {layout.mesh(),
          layout.partial_dims(),
          layout.partial_kind(),
          sharding.dtype,
          reduction_dtype(sharding.dtype, layout.partial_kind()),
          std::move(groups)};
}

bool Bucket::fits(const DTensor& value) const {
  if (value.mesh().size_of(value.layout().partial_dims()) == 1) return false;
  return values_.empty() || key_of(value) == key_;
}

bool Bucket::fits(const DTensor& value, const ShardingPtr& target) const {
  const Layout& layout = value.layout();
  return layout.is_partial() && layout.resolved() == target->layout && fits(value);
}

void Bucket::add(const DTensor& value, const MemoryOrder& order) {
  if (values_.empty()) key_ = key_of(value);
  const ShardingPtr& sharding = value.sharding();
  const bool same_groups = sharding->groups == key_.groups;
  values_.push_back(value);
  split_.push_back(same_groups ? value
                               : split_blocks(value, intern(sharding->shape, sharding->dtype,
                                                            sharding->layout, key_.groups)));
  orders_.push_back(order);
  bytes_ += shard_bytes(sharding->shape, key_.reduce_dtype, sharding->layout);
}

CommEntry Bucket::add(const DTensor& value, const ShardingPtr&, const MemoryOrder& order) {
  const Layout& layout = value.layout();
  const RelayoutStep step{RelayoutStep::Kind::all_reduce, dims_of(layout.partial_dims()), 0, 0,
                          layout.resolved()};
  add(value, order);
  return step_entry(value.shape(), value.dtype(), layout, step);
}

PlannedReductions Bucket::planned_memory() const {
  using Change = PlannedReduction::Change;
  PlannedReductions planned;
  std::vector<PlannedReduction> copies;
  for (const DTensor& value : values_) {
    const Layout& layout = value.layout();
    const ShardingPtr copy = intern(value.shape(), key_.reduce_dtype, layout),
                      sum = intern(value.shape(), key_.reduce_dtype, layout.resolved()),
                      reduced = intern(value.shape(), value.dtype(), layout.resolved());
    planned.at_start.push_back({Change::held, copy});
    planned.at_start.push_back({Change::held, sum});
    // A cast of the sum is there besides the sum, a view instead.
    const bool cast = key_.reduce_dtype != key_.dtype;
    if (!cast) planned.at_end.push_back({Change::released, sum});
    planned.at_end.push_back({Change::replaced, reduced, value.id()});
    if (cast) planned.at_end.push_back({Change::released, sum});
    copies.push_back({Change::released, copy});
  }
  planned.at_end.insert(planned.at_end.end(), copies.begin(), copies.end());
  return planned;
}

Bucket::Coordinates Bucket::coordinates_of(const BlockInfo& block) const {
  Coordinates coordinates = block.group;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    if (key_.dims >> d & 1) coordinates[d] = 0;
  }
  return coordinates;
}

/// Assigns each block to its flat. Blocks are in row-major order of their groups, so the members
/// are in order along the pending dimensions.
void Bucket::find_members() {
  const std::vector<BlockInfo>& blocks = split_[0].sharding()->blocks;
  for (size_t b = 0; b < blocks.size(); ++b) {
    flats_[coordinates_of(blocks[b])].members.push_back(static_cast<int>(b));
  }
}

void Bucket::announce_collective() const {
  if (key_.mesh.is_local()) return;
  Shape shape = {0};
  for (const DTensor& value : values_) shape[0] += value.numel();
  communicator_of(key_.mesh).begin({.op = CommOp::all_reduce,
                                    .mesh = key_.mesh,
                                    .dims = key_.dims,
                                    .dtype = key_.reduce_dtype,
                                    .shape = shape,
                                    .kind = key_.kind});
}

/// Returns the values' partial sums of the members at these positions of the group, reduced and
/// concatenated.
at::Tensor Bucket::filled(const Flat& flat, const Group& group, Interval positions) const {
  int64_t total = 0;
  const auto block = [&](const DTensor& value) -> const BlockInfo& {
    return value.sharding()->blocks[static_cast<size_t>(flat.members.front())];
  };
  for (const DTensor& value : split_) total += numel(extents(block(value).intervals));
  const at::TensorOptions options = at::TensorOptions()
                                        .dtype(key_.reduce_dtype)
                                        .device(block_device(key_.mesh, block(split_[0])));
  const at::Tensor buffer = buffers_->make({total}, options);
  int64_t offset = 0;
  for (size_t v = 0; v < split_.size(); ++v) {
    const DTensor& value = split_[v];
    const Shape shape = extents(block(value).intervals);
    at::Tensor slice = view_in_order(buffer.narrow(0, offset, numel(shape)), shape, orders_[v]);
    offset += numel(shape);
    bool any = false;
    std::vector<TreeAddend> addends;
    for (size_t m = 0; m < flat.members.size(); ++m) {
      const int64_t position = group.local[m];
      const at::Tensor& addend = value.blocks()[static_cast<size_t>(flat.members[m])];
      if (!addend.defined() || position < positions.lo || position >= positions.hi) continue;
      if (group.tree) {
        addends.push_back({position, moved_to(addend, slice.device()).to(key_.reduce_dtype)});
      } else if (any) {
        reduce_into(key_.kind, slice, moved_to(addend, slice.device()));
      } else {
        slice.copy_(addend);
      }
      any = true;
    }
    if (group.tree && any) tree_reduce(key_.kind, std::move(addends), slice);
    if (any) continue;
    slice.copy_(group.tree ? tree_identity(key_.kind, shape, options)
                           : reduce_identity(key_.kind, shape, options));
  }
  return buffer;
}

void Bucket::fill(Flat& flat, const Group& group) const {
  if (group.tree) {
    flat.addends.resize(flat.members.size());
    const int rank = group.owner[static_cast<size_t>(group.local.front())];
    const std::vector<int64_t> subtrees = subtree_positions(group, rank);
    for (size_t s = 0; s < subtrees.size(); ++s) {
      const int64_t end = s + 1 < subtrees.size() ? subtrees[s + 1] : group.size();
      const auto first = std::find(group.local.begin(), group.local.end(), subtrees[s]);
      flat.addends[static_cast<size_t>(first - group.local.begin())] =
          filled(flat, group, {subtrees[s], end});
    }
  } else {
    flat.addends = {filled(flat, group, {0, group.size()})};
  }
  for (const at::Tensor& buffer : flat.addends) {
    if (!buffer.defined() || !buffer.is_cpu()) continue;
    flat.check = flat.check.defined() ? flat.check + at::sum(buffer) : at::sum(buffer);
  }
}

void Bucket::start() {
  find_members();
  announce_collective();
  if (flats_.empty()) return;
  Communicator& communicator = communicator_of(key_.mesh);
  const Group group = make_group(key_.mesh, dims_of(key_.dims), key_.groups);
  // Only gradients are put into buckets.
  const DeviceMemory::As gradients(MemoryUse::gradients);
  for (auto& [coordinates, flat] : flats_) {
    const auto first = static_cast<size_t>(flat.members.front());
    const DeviceMemory::For memory(split_[0].sharding()->blocks[first].devices.front());
    fill(flat, group);
    flat.work = communicator.all_reduce(group, key_.kind, flat.addends, flat.result);
  }
}

bool Bucket::done() const {
  return std::all_of(flats_.begin(), flats_.end(), [](const auto& entry) {
    return !entry.second.work || entry.second.work->done();
  });
}

DTensor Bucket::resolved(const DTensor& split, const MemoryOrder& order) {
  const Sharding& from = *split.sharding();
  const Layout layout = from.layout.resolved();
  const ShardingPtr sharding =
      intern(from.shape, from.dtype, layout, used_groups(layout, key_.groups));
  Blocks blocks;
  std::map<Coordinates, at::Tensor> resolved_slices;
  for (const BlockInfo& block : sharding->blocks) {
    const DeviceMemory::For memory(block.devices.front());
    at::Tensor& value = resolved_slices[coordinates_of(block)];
    if (value.defined()) {
      // Under per_device every device has its own memory.
      blocks.push_back(moved_to(value.clone(), block_device(key_.mesh, block)));
      continue;
    }
    Flat& flat = flats_.at(coordinates_of(block));
    const Shape shape = extents(block.intervals);
    value = view_in_order(flat.result.narrow(0, flat.offset, numel(shape)), shape, order)
                .to(from.dtype);
    flat.offset += numel(shape);
    blocks.push_back(moved_to(value, block_device(key_.mesh, block)));
  }
  return DTensor(sharding, std::move(blocks));
}

void Bucket::wait() {
  for (auto& [coordinates, flat] : flats_) detail::wait(flat.work);
}

void Bucket::finish() {
  wait();
  for (size_t v = 0; v < values_.size(); ++v) {
    values_[v].replace(resolved(split_[v], orders_[v]));
  }
  values_.clear();
  split_.clear();
  orders_.clear();
  flats_.clear();
  bytes_ = 0;
}

std::vector<std::pair<size_t, at::Tensor>> Bucket::addends() const {
  std::vector<std::pair<size_t, at::Tensor>> all;
  for (size_t v = 0; v < split_.size(); ++v) {
    for (const at::Tensor& addend : split_[v].blocks()) {
      if (addend.defined()) all.emplace_back(v, addend);
    }
  }
  return all;
}

std::optional<size_t> Bucket::find_non_finite() const {
  const bool suspect = std::any_of(flats_.begin(), flats_.end(), [](const auto& entry) {
    return !std::isfinite(entry.second.check.template item<double>());
  });
  if (!suspect) return std::nullopt;
  for (const auto& [value, addend] : addends()) {
    if (!all_finite(addend)) return value;
  }
  return std::nullopt;
}

}  // namespace tessera::detail
