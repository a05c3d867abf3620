#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/tensor/memory_use.hpp>

namespace tessera {

class DTensor;

namespace detail {
enum class BlockPolicy : uint8_t;
}

/// Measures the peak memory of tensors made during its lifetime: per GPU, and on the host per
/// device of this process, virtual devices included, so that one can find out without the hardware
/// whether a model fits a device. While it lives, its thread places one block per device
/// (BlockPolicy::per_device), which virtual devices otherwise share; so construct it before
/// compile(), which places the weights. Memory of no particular device counts for every device;
/// host tensors below 1 KiB are not counted, nor is what a transport between processes buffers, or
/// what reductions keep of former results and buckets for later ones.
///
///     DeviceMemory memory;
///     model.compile({.optimizer = optimizer, .loss = "mse", .mesh = mesh});
///     model.fit(data);
///     std::cout << memory.peak(0) << " bytes\n";
///     std::cout << memory.at_peak(0).gradients << " of them gradients\n";
class DeviceMemory {
 public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Returns the peak bytes of device `device` (an index into Mesh::local_devices()); for -1, of
  /// memory made for no particular device.
  int64_t peak(int64_t device) const;

  /// Returns the bytes by use that a device (as for peak()) held when it first held peak() bytes,
  /// in the words of StepPlan::peaks. What an operation allocates and frees itself counts as
  /// activations. Uses are not known on GPUs.
  MemoryByUse at_peak(int64_t device) const;

  /// Begins to measure anew: the peaks are what is held now. The first step of a fit, which runs as
  /// code, may hold more than later ones.
  void reset_peaks();

  /// Returns the peak bytes of tensors on the GPU "cuda:index" since construction or
  /// reset_peaks(), by ATen's allocator's count, which includes earlier tensors. Throws ConfigError
  /// for a missing GPU.
  int64_t gpu_peak(int index) const;

  /// Attributes the tensors that this thread makes, while alive, to a device. Used by the runtime.
  class For {
   public:
    explicit For(int64_t device);

   private:
    detail::ScopedValue<std::optional<int64_t>> device_;
  };
  /// Counts the tensors that this thread makes, while alive, for a use. For what is no value, such
  /// as the memory of a collective; values get a label. Used by the runtime.
  class As {
   public:
    explicit As(MemoryUse use);

   private:
    detail::ScopedValue<std::optional<MemoryUse>> use_;
  };
  /// Counts memory until it is freed, as activations outside an As. Used by allocators.
  static c10::DataPtr counted(c10::DataPtr memory, size_t bytes);

  /// Whether one exists. Used by the runtime.
  static bool exists();
  /// Counts the memory of a tensor, or of a value's blocks, for a use: not from now on, but from
  /// when it was made, since what an operation's result is for shows only later. The first use that
  /// is given to memory stays. Used by the runtime.
  static void label(const at::Tensor& block, MemoryUse use);
  static void label(const DTensor& value, MemoryUse use);
  /// Returns the use of a value's memory; activations if it is not counted. Used by the runtime.
  static MemoryUse use_of(const DTensor& value);

 private:
  struct Counts;
  struct Allocation;
  /// Returns the counts of the DeviceMemory that is alive; null if there is none.
  static std::shared_ptr<Counts>& active();
  /// Returns the counted allocation that holds a tensor's memory; null if there is none.
  static Allocation* allocation_of(const at::Tensor& block);

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
