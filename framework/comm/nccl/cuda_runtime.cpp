#include <tessera/framework/comm/nccl/cuda_runtime.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/loaded_library.hpp>

namespace tessera::detail {

CudaRuntime::CudaRuntime() {
  const LoadedLibrary library({"libcudart.so.13"},
                              {.component = "device",
                               .rule = "GPUs need CUDA's runtime, as torch installs it",
                               .fix = "install torch with its nvidia packages"});
  library.find("cudaGetErrorString", error_string);
  library.find("cudaDeviceGetAttribute", attribute);
  library.find("cudaLibraryLoadData", load);
  library.find("cudaLibraryGetKernel", get_kernel);
  library.find("cudaLaunchKernel", launch);
  library.find("cudaStreamBeginCapture", begin_capture);
  library.find("cudaStreamGetCaptureInfo", capture_info);
  library.find("cudaStreamEndCapture", end_capture);
  library.find("cudaGraphInstantiate", instantiate);
  library.find("cudaGraphDestroy", destroy_graph);
  library.find("cudaGraphLaunch", launch_graph);
  library.find("cudaGraphExecDestroy", destroy_launchable);
}

void CudaRuntime::check(cudaError_t result, const char* what) const {
  if (result == cudaSuccess) return;
  throw StateError("device", "CUDA calls succeed", str(what, ": ", error_string(result)), "");
}

const CudaRuntime& cuda_runtime() {
  static const CudaRuntime runtime;
  return runtime;
}

}  // namespace tessera::detail
