#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

#include <ATen/ATen.h>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace device_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

TEST_CASE("devices that the machine does not have are named") {
  const int count = gpu_count();
  CHECK_FALSE(gpu(0).device.is_cpu());
  CHECK(gpu(0).device.index() == 0);
  CHECK(gpu(0).compute() != gpu(0).communication);
  CHECK_THROWS_WITH(gpu(count), Contains(str("cuda:", count)));
}

TEST_CASE("a block covers the mesh devices that are placed on one GPU") {
  using Gpus = std::vector<int>;
  struct Case {
    MeshDims dims;
    Gpus devices;     ///< GPU of each device
    Gpus merged;      ///< GPU of each block with per-worker blocks
    Gpus replicated;  ///< the same for a replicated value
  };
  const std::vector<Case> cases = {
      {{{"x", 4}, {"y", 1}}, {0, 0, 0, 0}, {0}, {0}},
      {{{"x", 2}, {"y", 2}}, {0, 0, 0, 0}, {0}, {0}},
      {{{"x", 4}, {"y", 1}}, {0, 0, 1, 1}, {0, 1}, {0, 1}},
      {{{"x", 2}, {"y", 2}}, {0, 0, 1, 1}, {0, 1}, {0, 1}},
      {{{"x", 1}, {"y", 4}}, {0, 0, 1, 1}, {0, 1}, {0, 1}},
      // The devices of one GPU do not form a box in the mesh.
      {{{"x", 2}, {"y", 2}}, {0, 1, 0, 1}, {0, 1, 0, 1}, {0, 1, 0, 1}},
      {{{"x", 3}, {"y", 2}}, {0, 0, 0, 1, 1, 1}, {0, 0, 0, 1, 1, 1}, {0, 0, 0, 1, 1, 1}},
  };
  const at::Tensor numbers = at::arange(84).view({12, 7}).to(at::kDouble);
  for (const Case& c : cases) {
    if (c.devices.back() >= gpu_count()) continue;
    const Mesh mesh = test::gpu_mesh(c.dims, c.devices);
    CAPTURE(mesh.describe(), c.devices);
    for (const Layout& layout : test::all_layouts(mesh, 2)) {
      CAPTURE(layout.describe());
      for (const BlockPolicy policy :
           {BlockPolicy::per_device, BlockPolicy::per_shard, BlockPolicy::per_worker}) {
        const BlockPolicyScope scope(policy);
        const DTensor value = pack(numbers, layout);
        Gpus blocks;
        for (const at::Tensor& block : value.blocks()) blocks.push_back(block.device().index());
        if (policy == BlockPolicy::per_device) CHECK(blocks == c.devices);
        if (policy == BlockPolicy::per_worker && layout.used_dims() == 0)
          CHECK(blocks == c.replicated);
        if (policy == BlockPolicy::per_worker && layout.axis(0) == std::vector{0} &&
            layout.axis(1).empty()) {
          CHECK(blocks == c.merged);
        }
        for (size_t d = 0; d < c.devices.size(); ++d) {
          const std::vector<int64_t> at = mesh.coordinates(int64_t(d));
          const std::vector<Interval> mine = test::shard_intervals(layout, {12, 7}, at);
          CHECK(value.blocks()[size_t(value.sharding()->block_of(at))].device().index() ==
                c.devices[d]);
          CHECK(value.local(int(d)).equal(test::cut(numbers, mine)));
        }
        CHECK(value.full().equal(numbers));
        CHECK(ops::matmul(value, ops::transpose(value, {1, 0}))
                  .full()
                  .allclose(numbers.matmul(numbers.t())));
        CHECK(ops::sum(value).full().item<double>() == 3486);
      }
    }
  }
}

TEST_CASE("a tensor may be changed after it was packed") {
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
