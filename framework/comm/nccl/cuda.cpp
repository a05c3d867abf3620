#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/nccl/cuda_graph.hpp>
#include <tessera/framework/comm/nccl/cuda_runtime.hpp>
#include <tessera/framework/comm/nccl/nvrtc.hpp>
#include <tessera/framework/comm/nccl/torch_folder.hpp>

namespace tessera::detail {
namespace {

/// Tessera's own kernels, each compiled at its first launch.
class Kernels {
 public:
  void launch(const DeviceKernel& kernel, const c10::Stream& stream, uint64_t count,
              const void* parameters) {
    constexpr uint64_t threads = 256;
    std::array<void*, 2> arguments = {const_cast<void*>(parameters), &count};
    const c10::DeviceGuard guard(stream.device());
    cuda_.check(cuda_.launch(code_of(kernel, stream.device_index()),
                             dim3(static_cast<unsigned int>((count + threads - 1) / threads)),
                             dim3(threads), arguments.data(), 0, c10::cuda::CUDAStream(stream)),
                kernel.name);
  }

 private:
  const void* code_of(const DeviceKernel& kernel, int gpu) {
    const std::lock_guard lock(mutex_);
    cudaKernel_t& code = codes_[{kernel.source, gpu}];
    if (!code) code = loaded(kernel, gpu);
    return code;
  }

  cudaKernel_t loaded(const DeviceKernel& kernel, int gpu) const {
    int major = 0, minor = 0;
    cuda_.check(cuda_.attribute(&major, cudaDevAttrComputeCapabilityMajor, gpu), kernel.name);
    cuda_.check(cuda_.attribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu), kernel.name);
    const std::string code = nvrtc_.compile(kernel, 10 * major + minor);
    cudaLibrary_t library = nullptr;
    cudaKernel_t made = nullptr;
    cuda_.check(cuda_.load(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                kernel.name);
    cuda_.check(cuda_.get_kernel(&made, library, kernel.name), kernel.name);
    return made;
  }

  const CudaRuntime& cuda_ = cuda_runtime();
  const Nvrtc nvrtc_{nvrtc_files()};
  std::mutex mutex_;
  std::map<std::pair<const char*, int>, cudaKernel_t> codes_;
};

class Cuda final : public Accelerator {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  int count() const override { return c10::cuda::device_count(); }
  std::string unavailable_reason() const override { return "this machine has no CUDA device"; }

  /// Loads libtorch_cuda, which is not linked because it takes seconds and gigabytes.
  void load() const override {
    // RTLD_GLOBAL: all of libtorch needs its registrations and symbols.
    if (!dlopen((torch_folder() + "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      const char* why = dlerror();
      throw ConfigError("device", "GPUs need libtorch_cuda.so and what it is linked with",
                        str("it cannot be loaded: ", why ? why : "no reason given"),
                        "install torch with its nvidia packages (./run setup does), or use "
                        "virtual_cpus(), --device cpu of the applications");
    }
    // ATen checks only once whether its CUDA part is loaded.
    if (!at::globalContext().hasCUDA()) {
      throw StateError("device", "the first GPU is used before anything asks ATen for GPUs",
                       "ATen was asked before libtorch_cuda.so was loaded",
                       "create a mesh of GPUs at the start of the program");
    }
  }

  void launch(const DeviceKernel& kernel, const c10::Stream& stream, uint64_t count,
              const void* parameters) const override {
    static Kernels kernels;
    kernels.launch(kernel, stream, count, parameters);
  }

  std::unique_ptr<GpuGraph> capture_graph(const c10::Stream& stream) const override {
    return capture_on_cuda(stream);
  }
};

}  // namespace

std::unique_ptr<const Accelerator> make_cuda() { return std::make_unique<Cuda>(); }

}  // namespace tessera::detail
