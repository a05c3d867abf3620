#pragma once

#include <cuda_runtime_api.h>

namespace tessera::detail {

/// The functions of CUDA's runtime that Tessera calls, from the copy that libc10_cuda links to.
struct CudaRuntime {
  decltype(&::cudaGetErrorString) error_string;
  decltype(&::cudaDeviceGetAttribute) attribute;
  decltype(&::cudaLibraryLoadData) load;
  decltype(&::cudaLibraryGetKernel) get_kernel;
  cudaError_t (*launch)(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                        size_t shared_bytes, cudaStream_t stream);
  decltype(&::cudaStreamBeginCapture) begin_capture;
  decltype(&::cudaStreamGetCaptureInfo) capture_info;
  decltype(&::cudaStreamEndCapture) end_capture;
  cudaError_t (*instantiate)(cudaGraphExec_t* launchable, cudaGraph_t graph,
                             unsigned long long flags);
  decltype(&::cudaGraphDestroy) destroy_graph;
  decltype(&::cudaGraphLaunch) launch_graph;
  decltype(&::cudaGraphExecDestroy) destroy_launchable;

  CudaRuntime();
  /// Throws StateError naming `what` if `result` is an error.
  void check(cudaError_t result, const char* what) const;
};

/// Returns CUDA's runtime, loaded by the first call. Throws ConfigError if it cannot be loaded.
const CudaRuntime& cuda_runtime();

}  // namespace tessera::detail
