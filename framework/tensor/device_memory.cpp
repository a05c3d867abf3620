#include <tessera/framework/tensor/device_memory.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>
#include <tessera/framework/tensor/internal/host_allocator.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t no_device = -1;
std::atomic<bool> counting = false;

}  // namespace

/// Bytes by device; under no_device those that count for every device.
struct DeviceMemory::Counts {
  struct Held {
    int64_t now = 0, peak = 0;
    MemoryByUse uses = {}, at_peak = {};  ///< now, and when the peak was reached
    uint64_t peak_time = 0;
  };
  std::mutex mutex;
  std::map<int64_t, Held> devices;
  uint64_t time = 0;  ///< number of changes so far

  /// Calls f(held, shared) for each device that counts memory of `device`; `shared` is what counts
  /// for it besides its own.
  template <class F>
  void each_of(int64_t device, const F& f) {
    static const Held none = {};
    const Held& shared = devices[no_device];
    for (auto& [id, held] : devices) {
      if (device != no_device && id != device) continue;
      f(held, id == no_device ? none : shared);
    }
  }

  static void note_peak(Held& held, const Held& shared, uint64_t time) {
    held.peak = held.now + shared.now;
    held.peak_time = time;
    for (MemoryUse use : memory_uses) held.at_peak[use] = held.uses[use] + shared.uses[use];
  }

  /// Adds bytes to a device's; returns the time of the change.
  uint64_t add(int64_t device, MemoryUse use, int64_t bytes) {
    const std::lock_guard lock(mutex);
    ++time;
    devices[device].now += bytes;
    devices[device].uses[use] += static_cast<double>(bytes);
    each_of(device, [&](Held& held, const Held& shared) {
      if (held.now + shared.now > held.peak) note_peak(held, shared, time);
    });
    return time;
  }

  /// Moves bytes, allocated at a time and not freed, from one use to another.
  void move(int64_t device, double bytes, uint64_t made, MemoryUse from, MemoryUse to) {
    const std::lock_guard lock(mutex);
    devices[device].uses[from] -= bytes;
    devices[device].uses[to] += bytes;
    each_of(device, [&](Held& held, const Held&) {
      // Memory made before the peak, and not freed since, was held at it.
      if (made > held.peak_time) return;
      held.at_peak[from] -= bytes;
      held.at_peak[to] += bytes;
    });
  }
};

std::shared_ptr<DeviceMemory::Counts>& DeviceMemory::active() {
  static std::shared_ptr<Counts> counts;
  return counts;
}

/// A counted allocation.
struct DeviceMemory::Allocation {
  c10::DataPtr data;
  std::shared_ptr<Counts> counts;
  int64_t device, bytes;
  MemoryUse use = MemoryUse::activations;
  uint64_t made = 0;  ///< Counts::time

  void give(MemoryUse now) {
    if (use != MemoryUse::activations || now == use) return;
    counts->move(device, static_cast<double>(bytes), made, use, now);
    use = now;
  }

  static void remove(void* context) {
    const std::unique_ptr<Allocation> allocation(static_cast<Allocation*>(context));
    allocation->counts->add(allocation->device, allocation->use, -allocation->bytes);
  }
};

DeviceMemory::DeviceMemory()
    : counts_(std::make_shared<Counts>()),
      blocks_(thread_state().block_policy, BlockPolicy::per_device) {
  if (counting.exchange(true)) {
    throw StateError("DeviceMemory", "only one may exist at a time", "a second one",
                     "destroy the first one before");
  }
  active() = counts_;
  reset_gpu_peaks();
}

int64_t DeviceMemory::gpu_peak(int index) const { return detail::gpu_peak(index); }

DeviceMemory::~DeviceMemory() {
  counting = false;
  active().reset();
}

int64_t DeviceMemory::peak(int64_t device) const {
  const std::lock_guard lock(counts_->mutex);
  const auto found = counts_->devices.find(device);
  return found != counts_->devices.end() ? found->second.peak : counts_->devices[no_device].peak;
}

MemoryByUse DeviceMemory::at_peak(int64_t device) const {
  const std::lock_guard lock(counts_->mutex);
  const auto found = counts_->devices.find(device);
  return found != counts_->devices.end() ? found->second.at_peak
                                         : counts_->devices[no_device].at_peak;
}

void DeviceMemory::reset_peaks() {
  {
    const std::lock_guard lock(counts_->mutex);
    counts_->each_of(no_device, [&](Counts::Held& held, const Counts::Held& shared) {
      Counts::note_peak(held, shared, counts_->time);
    });
  }
  reset_gpu_peaks();
}

bool DeviceMemory::exists() { return counting.load(std::memory_order_acquire); }

DeviceMemory::Allocation* DeviceMemory::allocation_of(const at::Tensor& block) {
  if (!block.defined() || !block.is_cpu() || !block.has_storage()) return nullptr;
  return static_cast<Allocation*>(watch_context(block.storage().data(), &Allocation::remove));
}

void DeviceMemory::label(const at::Tensor& block, MemoryUse use) {
  if (!exists() || !block.defined()) return;
  if (block.is_sparse()) {
    label(block._indices(), use);
    return label(block._values(), use);
  }
  if (Allocation* const allocation = allocation_of(block)) allocation->give(use);
}

void DeviceMemory::label(const DTensor& value, MemoryUse use) {
  // A value that is computed when it is read has no memory yet.
  if (!exists() || !value.defined() || DeferredValue::of(value)) return;
  for (const at::Tensor& block : value.stored_blocks()) label(block, use);
}

MemoryUse DeviceMemory::use_of(const DTensor& value) {
  if (!exists() || !value.defined() || DeferredValue::of(value)) return MemoryUse::activations;
  for (const at::Tensor& block : value.stored_blocks()) {
    const Allocation* const allocation = allocation_of(block);
    if (allocation) return allocation->use;
  }
  return MemoryUse::activations;
}

DeviceMemory::For::For(int64_t device) : device_(thread_state().device, device) {}

DeviceMemory::As::As(MemoryUse use) : use_(thread_state().memory_use, use) {}

c10::DataPtr DeviceMemory::counted(c10::DataPtr memory, size_t bytes) {
  if (!exists()) return memory;
  const std::shared_ptr<Counts> counts = active();
  if (!counts) return memory;
  auto allocation = std::make_unique<Allocation>();
  void* const data = memory.get();
  allocation->data = std::move(memory);
  allocation->counts = counts;
  allocation->device = thread_state().device.value_or(no_device);
  allocation->bytes = static_cast<int64_t>(bytes);
  allocation->use = thread_state().memory_use.value_or(MemoryUse::activations);
  Allocation& added = *allocation;
  c10::DataPtr watched = watched_memory(data, std::move(allocation), &Allocation::remove);
  added.made = counts->add(added.device, added.use, added.bytes);
  return watched;
}

}  // namespace tessera
