#include <tessera/framework/tensor/dtensor.hpp>

#include <algorithm>
#include <atomic>
#include <ostream>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/tensor/internal/transfer.hpp>

namespace tessera {

using namespace detail;

namespace {

bool holds_rows(const Blocks& blocks) {
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const at::Tensor& block) { return block.defined() && block.is_sparse(); });
}

void check_present(const DTensor& value, const char* where) {
  if (!value.blocks().empty()) return;
  throw StateError(where, "this process must hold a block of the value",
                   "no device of mesh " + value.mesh().describe(),
                   "read it in a process that has devices of the mesh");
}

/// Returns the elements as text; of a large tensor, those at the ends of its axes.
std::string elements_text(at::Tensor values) {
  constexpr int64_t ends = 3;
  const bool all = values.numel() <= 1000;
  for (int64_t a = 0; a < values.dim(); ++a) {
    const int64_t extent = values.size(a);
    if (all || extent <= 2 * ends) continue;
    values = at::cat({values.narrow(a, 0, ends), values.narrow(a, extent - ends, ends)}, a);
  }
  const std::string shown = all ? "" : str("\nthe first and last ", ends, " of longer axes:");
  return str(shown, "\n", values.cpu());
}

}  // namespace

uint64_t DTensor::next_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

DTensor::DTensor(ShardingPtr sharding, Blocks blocks) {
  const bool sparse = holds_rows(blocks);
  state_ = std::make_shared<State>(
      State{std::move(sharding), std::move(blocks), next_id(), false, sparse, {}, {}, {}, false});
}

DTensor DeferredValue::make(const Shape& shape, at::ScalarType dtype, const Mesh& mesh,
                            std::shared_ptr<const DeferredValue> value) {
  const auto rank = static_cast<int64_t>(shape.size());
  DTensor later = make(intern(shape, dtype, Layout::replicated(mesh, rank)), std::move(value));
  later.state().layout_deferred = true;
  return later;
}

DTensor DeferredValue::make(const ShardingPtr& sharding,
                            std::shared_ptr<const DeferredValue> value) {
  DTensor later(sharding, {});
  later.state().deferred = std::move(value);
  return later;
}

std::shared_ptr<const DeferredValue> DeferredValue::shared(const DTensor& value) {
  return value.state().deferred;
}

void DeferredValue::compute_now(const DTensor& value) { value.ready(); }

/// The value gets the id under which tapes know its result, unless something has recorded it
/// before.
void DTensor::compute_deferred() const {
  const std::shared_ptr<const DeferredValue> later = state().deferred;
  const DTensor value = later->compute();
  State& here = state();
  here.sharding = value.sharding();
  here.blocks = value.stored_blocks();
  if (!later->keeps_id()) here.id = value.id();
  here.row_sparse = value.is_row_sparse();
  here.deferred = nullptr;
  here.layout_deferred = false;
}

void DTensor::make_dense() const {
  const c10::InferenceMode inference;
  for (size_t b = 0; b < state().blocks.size(); ++b) {
    at::Tensor& block = state().blocks[b];
    const DeviceMemory::For memory(sharding()->blocks[b].devices.front());
    if (block.is_sparse()) block = block.to_dense();
  }
  state().row_sparse = false;
}

DTensor DTensor::mask() const { return state().mask ? *state().mask : DTensor(); }

DTensor DTensor::with_mask(const DTensor& mask) const {
  DTensor same;
  same.state_ = std::make_shared<State>(*state_);
  same.state().mask = mask.defined() ? std::make_shared<DTensor>(mask) : nullptr;
  if (OpListener* const listener = tracer()) listener->masked(same);
  return same;
}

int64_t DTensor::size(int64_t axis) const {
  return shape()[static_cast<size_t>(normalize_axis(axis, rank(), "DTensor::size"))];
}

at::Tensor DTensor::full() const {
  stop_tracing("a value was read on the host");
  // The processes that hold a view send its value to the others.
  const Mesh all = mesh().root();
  const DTensor replicated = all.is_local()
                                 ? relayout_value(*this, Layout::replicated(mesh(), rank()))
                                 : transfer_value(*this, Layout::replicated(all, rank()));
  check_present(replicated, "DTensor::full");
  const at::Tensor& block = replicated.blocks()[0];
  if (!block.is_cpu()) raise_deferred_checks();
  return block.cpu().contiguous();
}

at::Tensor DTensor::local(int device) const {
  stop_tracing("a value was read on the host");
  if (layout().is_partial()) {
    throw StateError("DTensor::local", "the value must be complete here, not a partial sum",
                     layout().describe(), "call full() or relayout() on every process first");
  }
  if (device < 0 || device >= static_cast<int>(mesh().local_ids().size())) {
    throw MeshError("DTensor::local",
                    str("this process holds ", mesh().local_ids().size(), " devices"),
                    str("device ", device), "name one of them");
  }
  const std::vector<int64_t> at = mesh().coordinates(mesh().local_ids()[size_t(device)]);
  const int index = sharding()->block_of(at);
  const BlockInfo& block = sharding()->blocks[static_cast<size_t>(index)];
  std::vector<Interval> here;
  for (int64_t coordinate : at) here.push_back({coordinate, coordinate + 1});
  at::Tensor shard = blocks()[static_cast<size_t>(index)];
  for (int64_t a = 0; a < rank(); ++a) {
    const Interval want = axis_interval(layout(), a, shape()[static_cast<size_t>(a)], here);
    const Interval have = block.intervals[static_cast<size_t>(a)];
    if (!(want == have)) shard = shard.narrow(a, want.lo - have.lo, want.size());
  }
  return shard.cpu();
}

at::Tensor DTensor::complete_element() const {
  stop_tracing("a value was read on the host");
  if (numel() != 1) {
    throw ShapeError("DTensor::item", "item() reads a tensor of one element",
                     "shape " + tessera::to_string(shape()), "reduce or slice it first");
  }
  if (!layout().is_fully_replicated()) {
    throw StateError("DTensor::item", "the value must be complete on this device",
                     "layout " + layout().describe(), "call full() on every process first");
  }
  check_present(*this, "DTensor::item");
  return blocks()[0];
}

std::string DTensor::to_string() const {
  if (!defined()) return "DTensor()";
  std::string text = str("DTensor(shape=", tessera::to_string(shape()),
                         ", dtype=", dtype_name(dtype()), ", layout=", layout().describe());
  const bool complete = layout().is_fully_replicated() && !blocks().empty();
  if (complete) stop_tracing("a value was printed");
  if (complete) text += elements_text(blocks()[0]);
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const DTensor& value) {
  return out << value.to_string();
}

void DTensor::replace(const DTensor& equal) const {
  if (is(equal)) return;
  ready().sharding = equal.sharding();
  state().blocks = equal.state().blocks;
  state().row_sparse = equal.state().row_sparse;
  state().deferred = equal.state().deferred;
}

bool DTensor::owns_memory() const {
  if (state_.use_count() != 1 || state().row_sparse || state().deferred) return false;
  for (const at::Tensor& block : state().blocks) {
    if (!block.defined() || block.use_count() != 1 || block.storage().use_count() != 1) {
      return false;
    }
  }
  return true;
}

}  // namespace tessera
