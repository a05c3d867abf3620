#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace tessera::detail {

/// A GPU of this process, and the streams that its work is queued on.
struct CudaDevice {
  c10::Device device;
  c10::Stream compute;        ///< ATen's own for the device
  c10::Stream communication;  ///< has a high priority; only engines use it
};

/// GPUs that this process may use, as CUDA_VISIBLE_DEVICES has it; 0 in a build without CUDA.
int cuda_device_count();

/// The GPU "cuda:index". The first call loads libtorch_cuda from the folder of the libtorch in use.
/// Throws ConfigError in a build without CUDA, on a machine without GPUs, for an index beyond them,
/// and for a library that cannot be loaded.
const CudaDevice& cuda_device(int index);

}  // namespace tessera::detail
