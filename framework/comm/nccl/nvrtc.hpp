#pragma once

#include <string>
#include <vector>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/nccl/loaded_library.hpp>

namespace tessera::detail {

/// Where NVRTC may be: as its package is installed beside torch, or as the loader finds it.
std::vector<std::string> nvrtc_files();

/// NVIDIA's compiler of kernels at run time.
class Nvrtc {
 public:
  /// The first of some files, or names that the loader finds. Throws ConfigError where there is
  /// none.
  explicit Nvrtc(const std::vector<std::string>& libraries);
  /// Machine code of a kernel for GPUs of a compute capability, 90 for 9.0. Throws ConfigError with
  /// what the compiler says first.
  std::string compile(const DeviceKernel& kernel, int capability) const;

 private:
  struct Program;
  using Result = int;
  static constexpr Result success = 0;

  std::string log(Program* program) const;

  LoadedLibrary library_;
  Result (*create_)(Program** program, const char* source, const char* name, int header_count,
                    const char* const* headers, const char* const* include_names);
  Result (*compile_)(Program* program, int option_count, const char* const* options);
  Result (*code_size_)(Program* program, size_t* bytes);
  Result (*code_)(Program* program, char* code);
  Result (*log_size_)(Program* program, size_t* bytes);
  Result (*log_)(Program* program, char* log);
  Result (*destroy_)(Program** program);
};

}  // namespace tessera::detail
