#include <tessera/framework/tensor/device_memory.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
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
  struct Bytes {
    int64_t now = 0, peak = 0;
  };
  std::mutex mutex;
  std::map<int64_t, Bytes> devices;

  void add(int64_t device, int64_t bytes) {
    const std::lock_guard lock(mutex);
    devices[device].now += bytes;
    const int64_t shared = devices[no_device].now;
    for (auto& [id, count] : devices) {
      const bool all = device == no_device;
      if (!all && id != device) continue;
      count.peak = std::max(count.peak, count.now + (id == no_device ? 0 : shared));
    }
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

  static void remove(void* context) {
    const std::unique_ptr<Allocation> allocation(static_cast<Allocation*>(context));
    allocation->counts->add(allocation->device, -allocation->bytes);
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

DeviceMemory::For::For(int64_t device) : device_(thread_state().device, device) {}

c10::DataPtr DeviceMemory::counted(c10::DataPtr memory, size_t bytes) {
  if (!counting.load(std::memory_order_acquire)) return memory;
  const std::shared_ptr<Counts> counts = active();
  if (!counts) return memory;
  auto allocation = std::make_unique<Allocation>();
  void* const data = memory.get();
  allocation->data = std::move(memory);
  allocation->counts = counts;
  allocation->device = thread_state().device.value_or(no_device);
  allocation->bytes = static_cast<int64_t>(bytes);
  const int64_t device = allocation->device;
  c10::DataPtr watched = watched_memory(data, std::move(allocation), &Allocation::remove);
  counts->add(device, static_cast<int64_t>(bytes));
  return watched;
}

}  // namespace tessera
