#include <tessera/framework/nn/key_value_cache.hpp>

#include <algorithm>
#include <array>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/shape.hpp>
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

/// Writes values, in[0], into the memory in[2], from each row's first step on, in[1]. `blocks`: how
/// the memory's steps are sharded, of as many steps as the values have.
void write_memory(std::span<const DTensor> in, const ShardingPtr& blocks) {
  const NoRecording no_tape;
  const c10::InferenceMode inference;
  resolve(in[0]);
  const DTensor own = relayout_to(in[0], blocks);
  const at::Tensor first = in[1].blocks()[0];
  for (size_t b = 0; b < blocks->blocks.size(); ++b) {
    if (blocks->blocks[b].empty) continue;
    write_steps(in[2].blocks()[b], own.blocks()[b], first.const_data_ptr<int64_t>(),
                blocks->blocks[b].intervals[0].lo);
  }
}

}  // namespace

void CachedSteps::check_end(const std::function<void(int64_t end)>& check) const {
  const auto checked = [check, count = positions.size(1)](std::span<const DTensor> in) {
    const at::Tensor rows = in[0].blocks()[0];
    const int64_t* const begin = rows.const_data_ptr<int64_t>();
    check(*std::max_element(begin, begin + rows.numel()) + count);
  };
  traced(std::span(&first, 1), checked, Changes::inputs);
}

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
  lent_ = false;
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
  // A recording would keep these positions.
  stop_tracing("the positions of steps in a KeyValueCache were made");
  const at::Tensor rows = at::tensor(first);
  const std::vector<std::vector<int>> axes = {x.layout().axis(0), {}};
  return {host_input(rows, x.mesh()),
          pack(rows.unsqueeze(1) + at::arange(count), Layout::from_axes(x.mesh(), axes))};
}

std::vector<int64_t> KeyValueCache::first_steps(const DTensor& x, int64_t seen) const {
  const auto rows = size_t(x.size(0));
  if (!lengths_.empty() && lengths_.size() != rows) {
    throw ConfigError("KeyValueCache", str("a batch has ", lengths_.size(), " rows, as before"),
                      str(rows), "make another cache for another batch");
  }
  std::vector<int64_t> first = lengths_;
  first.resize(rows);
  for (int64_t& each : first) each += seen;
  return first;
}

std::vector<DTensor> KeyValueCache::call_inputs(const DTensor& x) {
  const std::vector<int64_t> first = first_steps(x, 0);
  made_ = {};
  made_ = {.first = first, .count = x.size(1), .steps = make_steps(first, x)};
  lent_ = true;
  std::vector<DTensor> inputs = {made_.steps.first, made_.steps.positions};
  for (auto& [key, value] : values_) {
    own_memory(value);
    inputs.push_back(value);
  }
  return inputs;
}

CachedSteps KeyValueCache::next_steps(const Layer& layer, const DTensor& x) {
  int64_t& seen = steps_[layer.serial()];
  const std::vector<int64_t> first = first_steps(x, seen);
  const bool known = made_.steps.first.defined() && made_.first == first &&
                     made_.count == x.size(1) && made_.steps.first.mesh() == x.mesh();
  if (!known) {
    made_ = {};
    made_ = {.first = first, .count = x.size(1), .steps = make_steps(first, x)};
  }
  seen += x.size(1);
  CachedSteps steps = made_.steps;
  const Layout layout = Layout::from_axes(x.mesh(), {x.layout().axis(0), {}});
  if (!(steps.positions.layout() == layout)) {
    steps.positions = ops::relayout(steps.positions, layout);
  }
  return steps;
}

DTensor KeyValueCache::written(const Layer& layer, const std::string& name, const DTensor& value,
                               const CachedSteps& steps) {
  DTensor& all = values_[{layer.serial(), name}];
  if (!all.defined()) {
    stop_tracing("a KeyValueCache got memory");
    const NoRecording no_tape;
    const c10::InferenceMode inference;
    all = new_memory(value, capacity_);
  }
  Shape expected = all.shape();
  expected[1] = value.size(1);
  if (value.shape() != expected || value.dtype() != all.dtype()) {
    throw ShapeError(layer.class_name() + " " + layer.path() + ", KeyValueCache",
                     "further steps are like the cached ones, " + to_string(expected),
                     to_string(value.shape()), "make another cache for another batch");
  }
  if (is_abstract()) return all;
  if (!lent_) own_memory(all);
  const ShardingPtr blocks = intern(expected, all.dtype(), all.layout(), all.sharding()->groups);
  const std::array<DTensor, 3> in = {value, steps.first, all};
  const auto write = [blocks](std::span<const DTensor> of) { write_memory(of, blocks); };
  traced(in, write, Changes::inputs);
  return all;
}

}  // namespace tessera
