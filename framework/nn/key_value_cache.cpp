#include <tessera/framework/nn/key_value_cache.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns memory for `capacity` steps of values like this one. Masks begin with true, as values
/// without a mask have none.
DTensor new_memory(const DTensor& value, int64_t capacity) {
  Shape shape = value.shape();
  shape[1] = capacity;
  std::vector<std::vector<int>> axes;
  for (int64_t a = 0; a < value.rank(); ++a) axes.push_back(value.layout().axis(a));
  axes[1] = {};
  return filled(shape, value.dtype() == at::kBool, value.dtype(),
                Layout::from_axes(value.mesh(), axes));
}

/// Copies the blocks unless nothing else holds their memory.
void own_memory(DTensor& value) {
  if (value.owns_memory()) return;
  Blocks copies;
  const std::vector<BlockInfo>& infos = value.sharding()->blocks;
  for (size_t b = 0; b < infos.size(); ++b) {
    const DeviceMemory::For memory(infos[b].devices.front());
    const at::Tensor& block = value.blocks()[b];
    copies.push_back(block.defined() ? block.clone(at::MemoryFormat::Contiguous) : block);
  }
  value = DTensor(value.sharding(), std::move(copies));
}

/// Writes the steps of a block's rows from `first` on, counted from global row `lo`.
void write_steps(const at::Tensor& block, const at::Tensor& steps, const int64_t* first,
                 int64_t lo) {
  const int64_t rows = block.size(0), capacity = block.size(1), count = steps.size(1);
  const int64_t* const own = first + lo;
  if (std::all_of(own, own + rows, [&](int64_t each) { return each == own[0]; })) {
    block.narrow(1, own[0], count).copy_(steps);
    return;
  }
  std::vector<int64_t> targets;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t step = 0; step < count; ++step)
      targets.push_back(row * capacity + own[row] + step);
  }
  block.flatten(0, 1).index_copy_(0, moved_to(at::tensor(targets), block.device()),
                                  steps.flatten(0, 1));
}

}  // namespace

KeyValueCache::KeyValueCache(int64_t capacity) : capacity_(capacity) {
  if (capacity >= 1) return;
  throw ConfigError("KeyValueCache", "capacity must be at least 1", str(capacity),
                    "give the maximum number of steps of a row");
}

void KeyValueCache::set_lengths(const std::vector<int64_t>& lengths) {
  for (const int64_t length : lengths) {
    if (length >= 0 && length <= capacity_) continue;
    throw ConfigError("KeyValueCache", str("lengths lie in [0, ", capacity_, "], the capacity"),
                      str(length), "make a cache of a larger capacity");
  }
  lengths_ = lengths;
  steps_.clear();
}

void KeyValueCache::select_rows(const std::vector<int64_t>& rows) {
  const auto count = std::ssize(rows);
  bool same = true;
  for (int64_t row = 0; row < count; ++row) {
    const int64_t from = rows[size_t(row)];
    if (from < 0 || from >= count) {
      throw ConfigError("KeyValueCache", str("rows lie in [0, ", count, ")"), str(from),
                        "name a row of the batch for each row");
    }
    same &= from == row;
  }
  if (same) return;
  const NoRecording no_tape;
  if (!lengths_.empty()) {
    std::vector<int64_t> lengths;
    for (const int64_t from : rows) lengths.push_back(lengths_.at(size_t(from)));
    lengths_ = lengths;
  }
  for (auto& [key, value] : values_) {
    const DTensor index = pack(at::tensor(rows), Layout::replicated(value.mesh(), 1));
    // Of sharded rows, each device contributes those that it holds: a partial sum, of bools as
    // bytes.
    const bool mask = value.dtype() == at::kBool;
    const DTensor from = mask ? ops::cast(value, at::kByte) : value;
    const DTensor moved = relayout_value(ops::gather(from, index), value.layout());
    value = relayout_to(mask ? ops::cast(moved, at::kBool) : moved, value.sharding());
  }
}

CachedSteps KeyValueCache::make_steps(const std::vector<int64_t>& first, const DTensor& x) const {
  const int64_t count = x.size(1), end = *std::max_element(first.begin(), first.end()) + count;
  if (end > capacity_) {
    throw ConfigError("KeyValueCache", str("a row has at most ", capacity_, " steps, the capacity"),
                      str(end, " steps"), "make a cache of a larger capacity");
  }
  const at::Tensor rows = at::tensor(first);
  const std::vector<std::vector<int>> axes = {x.layout().axis(0), {}};
  return {host_input(rows, x.mesh()),
          pack(rows.unsqueeze(1) + at::arange(count), Layout::from_axes(x.mesh(), axes)), end};
}

CachedSteps KeyValueCache::next_steps(const Layer& layer, const DTensor& x) {
  const auto rows = size_t(x.size(0));
  if (!lengths_.empty() && lengths_.size() != rows) {
    throw ConfigError("KeyValueCache", str("a batch has ", lengths_.size(), " rows, as before"),
                      str(rows), "make another cache for another batch");
  }
  int64_t& seen = steps_[&layer];
  std::vector<int64_t> first = lengths_;
  first.resize(rows);
  for (int64_t& each : first) each += seen;
  const bool known = made_.steps.first.defined() && made_.first == first &&
                     made_.count == x.size(1) && made_.layout == x.layout();
  if (!known) {
    made_ = {};
    made_ = {
        .first = first, .count = x.size(1), .layout = x.layout(), .steps = make_steps(first, x)};
  }
  seen += x.size(1);
  return made_.steps;
}

DTensor KeyValueCache::written(const Layer& layer, const std::string& name, const DTensor& value,
                               const CachedSteps& steps) {
  stop_tracing("a KeyValueCache was written to");
  const NoRecording no_tape;
  const c10::InferenceMode inference;
  resolve(value);
  DTensor& all = values_[{&layer, name}];
  if (!all.defined()) all = new_memory(value, capacity_);
  Shape expected = all.shape();
  expected[1] = value.size(1);
  if (value.shape() != expected || value.dtype() != all.dtype()) {
    throw ShapeError(layer.class_name() + " " + layer.path() + ", KeyValueCache",
                     "further steps are like the cached ones, " + to_string(expected),
                     to_string(value.shape()), "make another cache for another batch");
  }
  if (is_abstract()) return all;
  const ShardingPtr blocks = intern(expected, all.dtype(), all.layout(), all.sharding()->groups);
  const DTensor own = relayout_to(value, blocks);
  const at::Tensor first = steps.first.blocks()[0];
  own_memory(all);
  for (size_t b = 0; b < blocks->blocks.size(); ++b) {
    if (blocks->blocks[b].empty) continue;
    write_steps(all.blocks()[b], own.blocks()[b], first.const_data_ptr<int64_t>(),
                blocks->blocks[b].intervals[0].lo);
  }
  return all;
}

}  // namespace tessera
