#include <tessera/framework/comm/nccl/cuda_device.hpp>

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

/// The folder that libc10_cuda was loaded from: libtorch_cuda lies beside it.
std::string torch_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&c10::cuda::device_count), &info) == 0) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

/// Makes ATen's operators for GPUs known. Not linked: loading it takes seconds and gigabytes.
void load_torch_cuda() {
  // Global: what it registers and exports is for all of libtorch.
  if (!dlopen((torch_folder() + "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    const char* why = dlerror();
    throw ConfigError("device", "GPUs need libtorch_cuda.so and what it is linked with",
                      str("it cannot be loaded: ", why ? why : "no reason given"),
                      "install torch with its nvidia packages, or use virtual_cpus(), --device cpu "
                      "of the applications");
  }
  // ATen asks once for its CUDA part and remembers the answer.
  if (!at::globalContext().hasCUDA()) {
    throw StateError("device", "the first GPU is named before anything asks ATen for GPUs",
                     "ATen was asked before libtorch_cuda.so was loaded",
                     "make a mesh of GPUs at the start of the program");
  }
}

void check_index(int index) {
  const int count = cuda_device_count();
  if (count == 0) {
    throw ConfigError("device", "this machine has no CUDA device", str("cuda:", index),
                      "use virtual_cpus(), --device cpu of the applications");
  }
  if (index >= count) {
    throw ConfigError("device", str("this process may use ", count, " CUDA devices"),
                      str("cuda:", index), "use fewer devices, or change CUDA_VISIBLE_DEVICES");
  }
}

CudaDevice make_device(int index) {
  static std::once_flag loaded;
  std::call_once(loaded, load_torch_cuda);
  const auto i = static_cast<c10::DeviceIndex>(index);
  return {c10::Device(c10::kCUDA, i), c10::cuda::getDefaultCUDAStream(i).unwrap(),
          c10::cuda::getStreamFromPool(/*isHighPriority=*/true, i).unwrap()};
}

}  // namespace

int cuda_device_count() { return c10::cuda::device_count(); }

const CudaDevice& cuda_device(int index) {
  static std::mutex mutex;
  static std::map<int, CudaDevice> devices;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = devices.find(index);
  if (found != devices.end()) return found->second;
  check_index(index);
  return devices.emplace(index, make_device(index)).first->second;
}

}  // namespace tessera::detail
