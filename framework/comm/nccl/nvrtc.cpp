#include <tessera/framework/comm/nccl/nvrtc.hpp>

#include <array>
#include <memory>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/nccl/torch_folder.hpp>

namespace tessera::detail {

std::vector<std::string> nvrtc_files() {
  return {torch_folder() + "../../nvidia/cu13/lib/libnvrtc.so.13", "libnvrtc.so.13"};
}

Nvrtc::Nvrtc(const std::vector<std::string>& libraries)
    : library_(libraries,
               {.component = "device",
                .rule = "kernels for GPUs are compiled by NVRTC",
                .fix = "install the nvidia-cuda-nvrtc package that the torch in use asks for"}) {
  library_.find("nvrtcCreateProgram", create_);
  library_.find("nvrtcCompileProgram", compile_);
  library_.find("nvrtcGetCUBINSize", code_size_);
  library_.find("nvrtcGetCUBIN", code_);
  library_.find("nvrtcGetProgramLogSize", log_size_);
  library_.find("nvrtcGetProgramLog", log_);
  library_.find("nvrtcDestroyProgram", destroy_);
}

std::string Nvrtc::log(Program* program) const {
  size_t bytes = 0;
  if (log_size_(program, &bytes) != success || bytes == 0) return "no reason given";
  std::string text(bytes, '\0');
  if (log_(program, text.data()) != success) return "no reason given";
  return text.substr(0, text.find('\n'));
}

std::string Nvrtc::compile(const DeviceKernel& kernel, int capability) const {
  Program* made = nullptr;
  if (create_(&made, kernel.source, kernel.name, 0, nullptr, nullptr) != success) {
    library_.fail(str("it cannot create a program for ", kernel.name));
  }
  const auto destroy = [this](Program* program) { destroy_(&program); };
  const std::unique_ptr<Program, decltype(destroy)> program(made, destroy);
  const std::string target = str("--gpu-architecture=sm_", capability);
  // No fused multiply-add: each product and sum is rounded, as on the host.
  const std::array<const char*, 3> options = {target.c_str(), "--std=c++20", "--fmad=false"};
  std::string code;
  size_t bytes = 0;
  if (compile_(made, static_cast<int>(options.size()), options.data()) != success) {
    library_.fail(str(kernel.name, " for sm_", capability, ": ", log(made)));
  }
  if (code_size_(made, &bytes) == success) code.resize(bytes);
  if (code.empty() || code_(made, code.data()) != success) {
    library_.fail(str("it returns no code of ", kernel.name, " for sm_", capability));
  }
  return code;
}

}  // namespace tessera::detail
