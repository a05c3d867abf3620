#include <tessera/framework/comm/internal/accelerator.hpp>

#include <map>
#include <mutex>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/event_clock.hpp>

namespace tessera::detail {
namespace {

using c10::impl::VirtualGuardImpl;

/// The backend that use_accelerator() set, until accelerator() takes it.
std::unique_ptr<const Accelerator>& replacement() {
  static std::unique_ptr<const Accelerator> other;
  return other;
}

bool is_in_use = false;

const Accelerator& accelerator() {
  static const std::unique_ptr<const Accelerator> kind = [] {
    is_in_use = true;
    return replacement() ? std::move(replacement()) : make_cuda();
  }();
  return *kind;
}

void check_index(int index) {
  const int count = gpu_count();
  if (count == 0) {
    throw ConfigError("device", accelerator().unavailable_reason(), str("cuda:", index),
                      "use virtual_cpus(), --device cpu of the applications");
  }
  if (index >= count) {
    throw ConfigError("device", str("this process may use ", count, count == 1 ? " GPU" : " GPUs"),
                      str("cuda:", index),
                      "use fewer devices, place several on each GPU (--virtual-devices of the "
                      "applications), or change CUDA_VISIBLE_DEVICES");
  }
}

Gpu make_gpu(int index) {
  load_gpus();
  const c10::Device device(accelerator().type(), static_cast<c10::DeviceIndex>(index));
  const VirtualGuardImpl streams(device.type());
  return {device, streams.getStreamFromGlobalPool(device, /*isHighPriority=*/true),
          streams.getStreamFromGlobalPool(device, /*isHighPriority=*/false)};
}

/// The GPUs that gpu() has returned, by index.
struct GpusInUse {
  std::mutex mutex;
  std::map<int, Gpu> gpus;
};

GpusInUse& gpus_in_use() {
  static GpusInUse in_use;
  return in_use;
}

}  // namespace

void use_accelerator(std::unique_ptr<const Accelerator> other) {
  if (is_in_use) {
    throw StateError("use_accelerator", "it is called before the first use of GPUs",
                     "GPUs are in use", "call it at the start of the program");
  }
  replacement() = std::move(other);
}

c10::Stream Gpu::compute() const { return VirtualGuardImpl(device.type()).getStream(device); }

int gpu_count() {
  static const int count = accelerator().count();
  return count;
}

const Gpu& gpu(int index) {
  GpusInUse& in_use = gpus_in_use();
  const std::lock_guard<std::mutex> lock(in_use.mutex);
  const auto found = in_use.gpus.find(index);
  if (found != in_use.gpus.end()) return found->second;
  check_index(index);
  const Gpu& made = in_use.gpus.emplace(index, make_gpu(index)).first->second;
  if (in_use.gpus.size() == 1) use_event_clock(made);
  return made;
}

void load_gpus() {
  static const bool loaded = [] {
    if (gpu_count() > 0) accelerator().load();
    return true;
  }();
  static_cast<void>(loaded);
}

int64_t gpu_peak(int index) {
  const c10::Device device = gpu(index).device;
  c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(device.type());
  const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  if (!allocator.initialized()) return 0;
  return allocator.getDeviceStats(device.index()).allocated_bytes[all].peak;
}

void reset_gpu_peaks() {
  GpusInUse& in_use = gpus_in_use();
  const std::lock_guard<std::mutex> lock(in_use.mutex);
  for (const auto& [index, gpu] : in_use.gpus) {
    c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(gpu.device.type());
    if (allocator.initialized()) allocator.resetPeakStats(gpu.device.index());
  }
}

void launch(const DeviceKernel& kernel, c10::Device gpu, uint64_t count, const void* parameters) {
  if (count == 0) return;
  accelerator().launch(kernel, VirtualGuardImpl(gpu.type()).getStream(gpu), count, parameters);
}

std::unique_ptr<GpuGraph> capture_graph(const c10::Stream& stream) {
  return accelerator().capture_graph(stream);
}

void order(const c10::Stream& before, const c10::Stream& after) {
  const c10::DeviceGuard guard(before.device());
  c10::Event event(before.device_type());
  event.record(before);
  event.block(after);
}

}  // namespace tessera::detail
