#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <c10/core/Allocator.h>

#include <tessera/framework/base/internal/scoped_value.hpp>

namespace tessera {

namespace detail {
enum class BlockPolicy : uint8_t;
}

/// Measures the peak memory of tensors made during its lifetime: per GPU, and on the host per
/// device of this process, virtual devices included, so that one can find out without the hardware
/// whether a model fits a device. While it lives, its thread places one block per device
/// (BlockPolicy::per_device), which virtual devices otherwise share; so construct it before
/// compile(), which places the weights. Memory of no particular device counts for every device;
/// host tensors below 1 KiB are not counted.
///
///     DeviceMemory memory;
///     model.compile({.optimizer = optimizer, .loss = "mse", .mesh = mesh});
///     model.fit(data);
///     std::cout << memory.peak(0) << " bytes\n";
class DeviceMemory {
 public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Returns the peak bytes of device `device` (an index into Mesh::local_devices()); for -1, of
  /// memory made for no particular device.
  int64_t peak(int64_t device) const;

  /// Returns the peak bytes of tensors on the GPU "cuda:index" since construction, by ATen's
  /// allocator's count, which includes earlier tensors. Throws ConfigError for a missing GPU.
  int64_t gpu_peak(int index) const;

  /// Attributes the tensors that this thread makes, while alive, to a device. Used by the runtime.
  class For {
   public:
    explicit For(int64_t device);

   private:
    detail::ScopedValue<std::optional<int64_t>> device_;
  };
  /// Counts memory until it is freed. Used by the allocator.
  static c10::DataPtr counted(c10::DataPtr memory, size_t bytes);

 private:
  struct Counts;
  struct Allocation;
  /// Returns the counts of the DeviceMemory that is alive; null if there is none.
  static std::shared_ptr<Counts>& active();

  std::shared_ptr<Counts> counts_;
  detail::ScopedValue<std::optional<detail::BlockPolicy>> blocks_;
};

/// Memory of a captured step, whose requests are planned once into one arena.
struct StepMemory {
  int64_t planned = 0;  ///< bytes of the arena that the plan needs
  int64_t asked = 0;    ///< sum of the bytes of all planned requests
  int64_t hits = 0;     ///< requests served by the plan
  int64_t misses = 0;   ///< requests of 1 KiB and more that the usual allocator served
};

}  // namespace tessera
