#include <tessera/framework/tensor/device_memory.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace device_memory_test {

using namespace tessera;

TEST_CASE("device memory counts one at a time, and what is given back") {
  DeviceMemory memory;
  CHECK_THROWS_AS(DeviceMemory(), StateError);
  {
    const DeviceMemory::For first(0);
    at::Tensor a = at::empty({1000, 4});
    a = at::Tensor();
    const at::Tensor b = at::empty({500, 4});
    const DeviceMemory::For second(1);
    const at::Tensor c = at::empty({2000, 4});
  }
  CHECK(memory.peak(0) == 16000);
  CHECK(memory.peak(1) == 32000);
}

}  // namespace device_memory_test
