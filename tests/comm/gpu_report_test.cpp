#include <tessera/framework/comm/nccl/gpu_report.hpp>

#include <cstdlib>

#include "tests/support/catch.hpp"

namespace gpu_report_test {

using namespace tessera::detail;
using Catch::Matchers::EndsWith;

TEST_CASE("a report tells of the driver and its GPUs") {
  const GpuDriver driver = find_gpu_driver(FAKE_DRIVER_LIBRARY);
  CHECK_THAT(driver.version, EndsWith(", for CUDA 13.2"));
  CHECK(driver.problem.empty());
  REQUIRE(driver.gpus.size() == 2);
  CHECK(driver.gpus[0].name == "Imaginary A");
  CHECK(driver.gpus[1].name == "Imaginary B");
  CHECK(driver.gpus[1].bytes == uint64_t{11} << 30);
  CHECK(driver.gpus[1].major == 9);
  CHECK(driver.gpus[1].minor == 1);
}

TEST_CASE("a report says why there are no GPUs") {
  const GpuDriver none = find_gpu_driver("libno_such_driver.so");
  CHECK(none.version.empty());
  CHECK(none.gpus.empty());
  CHECK(none.problem == "there is no driver for GPUs: libno_such_driver.so cannot be loaded");
  ::setenv("FAKE_DRIVER_ERROR", "1", 1);
  const GpuDriver broken = find_gpu_driver(FAKE_DRIVER_LIBRARY);
  ::unsetenv("FAKE_DRIVER_ERROR");
  CHECK_THAT(broken.version, EndsWith(", for CUDA 13.2"));
  CHECK(broken.gpus.empty());
  CHECK(broken.problem == "no CUDA-capable device is detected");
}

}  // namespace gpu_report_test
