#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>

namespace tessera::test::fake_gpu {

inline constexpr c10::DeviceIndex max_gpus = 8;

/// Memory of the fake GPUs. Each GPU's is mapped twice: at the addresses that tensors have, which
/// nobody may touch, and at others, which kernels use.
c10::DeviceAllocator& gpu_allocator();

/// The GPU that an address belongs to; -1 for one of the host.
c10::DeviceIndex gpu_of(const void* address);
/// Where kernels find what lies at an address of a GPU.
void* inside(const void* address);
/// Whether an address is one that kernels use.
bool is_inside(const void* address);

/// Says that work of a stream uses the block at an address: once given back, it stays as it is
/// until what the stream has to do then is done. Other blocks are overwritten at once.
void record_use(const void* address, c10::Stream stream);

/// Gives everyone the memory that a recording had for itself.
void release_pool(c10::DeviceIndex device, uint64_t pool);

}  // namespace tessera::test::fake_gpu
