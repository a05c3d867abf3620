#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/nccl/cuda_device.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

#include <ATen/ATen.h>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"

namespace device_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("devices beyond those of the machine are named") {
  const int count = cuda_device_count();
  CHECK(cuda_device(0).device == c10::Device(c10::kCUDA, 0));
  CHECK(cuda_device(0).compute != cuda_device(0).communication);
  CHECK_THROWS_WITH(cuda_device(count), Contains(str("cuda:", count)));
}

TEST_CASE("each device of a mesh of GPUs has a block of its own, under every policy") {
  const Mesh mesh = test::gpu_mesh({{"x", 2}, {"y", 2}});
  for (const BlockPolicy policy :
       {BlockPolicy::per_device, BlockPolicy::per_shard, BlockPolicy::per_worker}) {
    const BlockPolicyScope scope(policy);
    const DTensor value = pack(at::arange(12).view({4, 3}), Layout({"x", unsharded}, mesh));
    REQUIRE(value.blocks().size() == 4);
    for (size_t b = 0; b < 4; ++b) {
      const c10::Device device = value.blocks()[b].device();
      CHECK(device.is_cuda());
      CHECK(device.index() == mesh.local_devices()[b].index);
    }
    CHECK(value.local(3).is_cpu());
    CHECK(value.local(3).equal(at::arange(6, 12).view({2, 3})));
    CHECK(value.full().equal(at::arange(12).view({4, 3})));
  }
}

TEST_CASE("a tensor may be changed once it was packed") {
  const Mesh mesh = test::gpu_mesh({{"x", 1}});
  for (const bool pinned : {false, true}) {
    at::Tensor source = at::ones({1 << 20});
    if (pinned) source = source.pin_memory();
    const DTensor value = pack(source, Layout({unsharded}, mesh));
    source.fill_(7);
    CHECK(value.full().eq(1).all().item<bool>());
  }
}

}  // namespace device_test
