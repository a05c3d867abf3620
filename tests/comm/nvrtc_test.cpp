#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/nccl/nvrtc.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/gpu_draw.hpp>

#include <optional>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/skip.hpp"

namespace nvrtc_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns the files that `./run test` installs, or those installed for GPUs.
std::vector<std::string> files() {
  std::vector<std::string> all = nvrtc_files();
  all.insert(all.begin(),
             test::golden_path("../../build/deps/nvrtc/nvidia/cu13/lib/libnvrtc.so.13"));
  return all;
}

std::optional<Nvrtc> compiler() {
  try {
    return Nvrtc(files());
  } catch (const ConfigError& error) {
    test::skip(error.what());
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("NVRTC compiles each kernel of this library for Ampere and later GPUs") {
  const std::optional<Nvrtc> nvrtc = compiler();
  if (!nvrtc) return;
  for (const DeviceKernel* kernel : {&draw_kernel(), &index_kernel()}) {
    for (const int capability : {80, 90}) {
      const std::string code = nvrtc->compile(*kernel, capability);
      CHECK(code.substr(1, 3) == "ELF");
      CHECK_THAT(code, Contains(kernel->name));
    }
  }
}

TEST_CASE("a kernel that NVRTC refuses is an error with its line") {
  const std::optional<Nvrtc> nvrtc = compiler();
  if (!nvrtc) return;
  const DeviceKernel wrong{.name = "wrong", .source = "\nextern \"C\" __global__ void wrong( {}"};
  CHECK_THROWS_WITH(nvrtc->compile(wrong, 80), Contains("wrong for sm_80: wrong(2): error"));
}

TEST_CASE("a machine without NVRTC is told what to install") {
  CHECK_THROWS_WITH(Nvrtc({"libnvrtc_that_is_nowhere.so"}),
                    Contains("libnvrtc_that_is_nowhere.so cannot be loaded") &&
                        Contains("install the nvidia-cuda-nvrtc package"));
}

}  // namespace nvrtc_test
