#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/internal/loaded_library.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>

namespace tessera::detail {

/// Returns the candidates for NVRTC: its package beside torch, then the loader's search path.
std::vector<std::string> nvrtc_files();

/// NVRTC, NVIDIA's run-time compiler of kernels.
class Nvrtc {
 public:
  /// Loads the first of `libraries` (files or names for the loader) that can be loaded. Throws
  /// ConfigError if none can be.
  explicit Nvrtc(const std::vector<std::string>& libraries);
  /// Returns the machine code of a kernel for a compute capability (90 for 9.0). Throws ConfigError
  /// with the first line of the compiler's log.
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
