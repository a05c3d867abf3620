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

/// Counts the memory of tensors that are made while it lives: on GPUs by GPU, on the host by the
/// device of this process that they are made for. There virtual devices count as real ones do, so
/// that a program can be tried for a size of device without it. Tensors that its thread places
/// meanwhile have a block of their own on each device, which virtual devices share otherwise;
/// weights are placed by compile(). What is made for no device in particular counts for all of
/// them, tensors below 1 KiB for none.
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

  /// The most bytes that device `device` (a position in Mesh::local_devices()) held at a time; for
  /// -1 what was made for no device in particular.
  int64_t peak(int64_t device) const;

  /// The most bytes that tensors on the GPU "cuda:index" held at a time since then, as ATen's
  /// allocator counts them; those that were there before are among them. Throws ConfigError for a
  /// GPU that is not there.
  int64_t gpu_peak(int index) const;

  /// For the runtime: while alive, this thread makes tensors for a device.
  class For {
   public:
    explicit For(int64_t device);

   private:
    detail::ScopedValue<std::optional<int64_t>> device_;
  };
  /// For the allocator: counts memory until it is given back.
  static c10::DataPtr counted(c10::DataPtr memory, size_t bytes);

 private:
  struct Counts;
  struct Held;
  /// The counts of the object that counts at present; null while none does.
  static std::shared_ptr<Counts>& present();

  std::shared_ptr<Counts> counts_;
  detail::ScopedValue<std::optional<detail::BlockPolicy>> blocks_;
};

}  // namespace tessera
