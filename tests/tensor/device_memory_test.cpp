#include <tessera/framework/tensor/device_memory.hpp>

#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

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

TEST_CASE("virtual devices count as devices of their own") {
  const Mesh mesh = create_mesh({{"batch", 4}}, virtual_cpus(4));
  std::optional<DeviceMemory> memory(std::in_place);
  const DTensor rows = pack(at::rand({8, 1000}), Layout::batch_sharded(mesh, "batch", 2));
  const DTensor whole = pack(at::rand({1000}), Layout::replicated(mesh, 1));
  // Whoever packs holds all of it for a moment: not counted here.
  memory.reset();
  memory.emplace();
  const DTensor square_of_rows = ops::square(rows), square_of_whole = ops::square(whole);
  // A device holds a quarter of the rows, and all of what is not cut.
  for (int64_t device = 0; device < 4; ++device) CHECK(memory->peak(device) == 8000 + 4000);
}

}  // namespace device_memory_test
