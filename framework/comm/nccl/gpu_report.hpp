#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::detail {

/// A GPU as the driver describes it.
struct GpuDescription {
  std::string name;
  uint64_t bytes = 0;
  int major = 0, minor = 0;  ///< the compute capability
};

/// The NVIDIA driver of this machine.
struct GpuDriver {
  std::string version;  ///< such as "580.82.07, for CUDA 13.0"; empty: there is no driver
  std::string problem;  ///< why there is no driver, or no GPU to use; else empty
  std::vector<GpuDescription> gpus;
};

/// Asks the driver itself, without CUDA's runtime and libtorch, so that it also tells of GPUs that
/// this installation cannot use. `library` is the file or name of the driver's library.
GpuDriver find_gpu_driver(const std::string& library = "libcuda.so.1");

/// Returns the version and file of NCCL as GPUs would use it, such as
/// "2.28.9, /usr/lib/libnccl.so.2", or why it cannot be loaded.
std::string nccl_report();

}  // namespace tessera::detail
