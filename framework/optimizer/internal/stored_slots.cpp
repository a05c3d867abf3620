#include <tessera/framework/optimizer/internal/stored_slots.hpp>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/stored_value.hpp>

namespace tessera::detail {

/// The slots of one variable, and where they are during its update.
class StoredSlots::Staged {
 public:
  explicit Staged(const VariableUpdate& update) : slots_(update.slots) {
    for (const Variable& slot : slots_) {
      const DTensor& value = slot.value();
      std::shared_ptr<StoredValue> stored = StoredValue::of(value);
      from_.push_back(stored);
      // Another handle, or a checkpoint that is being written, still reads the present elements.
      constexpr int64_t own = 3;  // the value's, from_, and here
      if (stored.use_count() > own || !DeferredValue::is_only_handle(value)) {
        stored = StoredValue::make(value.sharding(), stored->order, slot.placement().rests_in);
      }
      bytes_ += stored->staging_bytes();
      to_.push_back(std::move(stored));
    }
  }

  int64_t bytes() const { return bytes_; }

  void read(const at::Tensor& staging) {
    each_part(staging, [&](size_t i, const at::Tensor& part) { from_[i]->read(part); });
  }
  void write(const at::Tensor& staging) {
    each_part(staging, [&](size_t i, const at::Tensor& part) { to_[i]->write(part); });
  }

  /// Makes the staged elements the slots' values.
  void begin(const at::Tensor& staging) {
    each_part(staging,
              [&](size_t i, const at::Tensor& part) { slots_[i].set_value(to_[i]->in(part)); });
  }
  /// Stages the slots' new elements, to be written to the stores, which become the slots' values.
  void end(const at::Tensor& staging) {
    each_part(staging, [&](size_t i, const at::Tensor& part) {
      const Blocks staged = to_[i]->views(part);
      const Blocks& updated = slots_[i].value().blocks();
      for (size_t b = 0; b < updated.size(); ++b) {
        if (!updated[b].is_alias_of(staged[b])) staged[b].copy_(updated[b]);
      }
      set(slots_[i], to_[i]);
    });
  }
  /// Makes the stored elements the slots' values again.
  void undo() {
    for (size_t i = 0; i < slots_.size(); ++i) set(slots_[i], from_[i]);
  }

 private:
  template <class F>
  void each_part(const at::Tensor& staging, const F& f) const {
    int64_t begin = 0;
    for (size_t i = 0; i < to_.size(); ++i) {
      const int64_t size = to_[i]->staging_bytes();
      f(i, staging.narrow(0, begin, size));
      begin += size;
    }
  }

  static void set(const Variable& slot, const std::shared_ptr<StoredValue>& stored) {
    slot.set_value(DeferredValue::make(stored->sharding, stored));
  }

  std::vector<Variable> slots_;
  std::vector<std::shared_ptr<StoredValue>> from_, to_;
  int64_t bytes_ = 0;
};

DTensor StoredSlots::stored(const Variable& slot, const DTensor& value) {
  return StoredValue::store(value, slot.spec().memory_order, slot.placement().rests_in);
}

void StoredSlots::put_away(const Variable& slot) {
  if (StoredValue::of(slot.value())) return;
  slot.set_value(stored(slot, slot.value()));
}

void StoredSlots::update(const std::vector<VariableUpdate>& updates,
                         const std::function<void(const VariableUpdate&)>& update) {
  std::vector<Staged> all(updates.begin(), updates.end());
  int64_t bytes = 0;
  for (const Staged& staged : all) bytes = std::max(bytes, staged.bytes());
  const std::vector<BlockInfo>& blocks = updates[0].weight.sharding()->blocks;
  const DeviceMemory::For memory(blocks.empty() ? 0 : blocks[0].devices.front());
  std::array<at::Tensor, 2> staging;
  // Destroyed before the buffers, which their threads use: a future waits for its thread.
  std::array<std::future<void>, 2> ready;
  const auto work = [&](size_t i, bool has_written) {
    const at::Tensor& buffer = staging[i % 2];
    if (has_written) all[i - 2].write(buffer);
    if (i < all.size()) all[i].read(buffer);
  };
  for (size_t i = 0; i < std::min<size_t>(2, all.size()); ++i) {
    staging[i] = at::empty({bytes}, at::kByte);
    DeviceMemory::label(staging[i], MemoryUse::slots);
    ready[i] = std::async(std::launch::async, work, i, false);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const at::Tensor& buffer = staging[i % 2];
    ready[i % 2].get();
    {
      auto failed = c10::make_scope_exit([&] { all[i].undo(); });
      all[i].begin(buffer);
      update(updates[i]);
      failed.release();
    }
    all[i].end(buffer);
    ready[i % 2] = std::async(std::launch::async, work, i + 2, true);
  }
  for (std::future<void>& last : ready) {
    if (last.valid()) last.get();
  }
}

}  // namespace tessera::detail
