#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>

namespace tessera::test::fake_gpu {

inline constexpr c10::DeviceIndex max_gpus = 8;

/// Returns the allocator of the fake GPUs. Each GPU's memory is mapped twice: at the addresses of
/// tensors, which nobody may touch, and at those that kernels use.
c10::DeviceAllocator& gpu_allocator();

/// Returns the GPU that an address belongs to; -1 for host memory.
c10::DeviceIndex gpu_of(const void* address);
/// Returns the kernels' address of a GPU address.
void* inside(const void* address);
/// Whether an address is one that kernels use.
bool is_inside(const void* address);

/// Records that work of a stream uses the block at an address: once freed, the block stays
/// unchanged until the stream's current work is done. Other blocks are overwritten at once.
void record_use(const void* address, c10::Stream stream);

/// Makes a recording's private memory available to all.
void release_pool(c10::DeviceIndex device, uint64_t pool);

}  // namespace tessera::test::fake_gpu
