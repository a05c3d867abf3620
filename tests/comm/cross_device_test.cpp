#include <tessera/framework/comm/cross_device.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/local_group.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/warnings.hpp"

namespace cross_device_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

std::vector<at::Tensor> random_parts(int64_t members) {
  std::vector<at::Tensor> parts;
  const at::Tensor all = at::arange(members * 21, at::kDouble).sin().view({members, 7, 3});
  for (int64_t m = 0; m < members; ++m) parts.push_back(all[m].clone());
  return parts;
}

at::Tensor reduced(const CrossDeviceOps& ops, Reduce kind, const std::vector<at::Tensor>& parts) {
  const auto members = static_cast<int64_t>(parts.size());
  at::Tensor out;
  wait(cross_device_communicator(ops, virtual_cpus(members))
           ->all_reduce(local_group(members), kind, parts, out));
  return out;
}

std::vector<at::Tensor> weights_after(const Mesh& mesh) {
  const BlockPolicyScope each(BlockPolicy::per_device);
  const Sequential model = compiled_small(mesh);
  model.fit(small_data(27), {.batch_size = 8, .verbose = 0});
  return full_weights(model);
}

}  // namespace

TEST_CASE("cross device: every kind gives the local communicator's sums") {
  const Warnings quiet;
  const int64_t members = GENERATE(1, 2, 3, 5, 8);
  const int64_t packs = GENERATE(0, 1, 4, 50);
  const Reduce kind = GENERATE(Reduce::sum, Reduce::max, Reduce::min);
  const std::vector<at::Tensor> parts = random_parts(members);
  const at::Tensor before = parts[0].clone();
  const at::Tensor expected = reduce_all(kind, parts);
  const std::vector<CrossDeviceOps> all = {NcclAllReduce(packs), HierarchicalCopyAllReduce(packs),
                                           ReductionToOneDevice("cpu:0")};
  for (const CrossDeviceOps& ops : all) {
    const at::Tensor out = reduced(ops, kind, parts);
    REQUIRE(out.sizes() == expected.sizes());
    CHECK(at::allclose(out, expected, 0, 1e-14));
  }
  CHECK(at::equal(parts[0], before));
}

TEST_CASE("cross device: to one device in order, by pairs in a tree") {
  // Adding 1 to 1e16 loses it, so the result shows the order.
  const std::vector<double> values = {1e16, 1, -1e16, 1, 3};
  std::vector<at::Tensor> parts;
  for (double value : values) parts.push_back(at::full({2}, value, at::kDouble));
  const double in_order = (((1e16 + 1) - 1e16) + 1) + 3;
  const double tree = ((1e16 + 1) + (-1e16 + 1)) + 3;
  REQUIRE(in_order != tree);
  CHECK(reduced(ReductionToOneDevice(), Reduce::sum, parts)[0].item<double>() == in_order);
  CHECK(reduced(HierarchicalCopyAllReduce(), Reduce::sum, parts)[0].item<double>() == tree);
  CHECK(reduced(HierarchicalCopyAllReduce(2), Reduce::sum, parts)[1].item<double>() == tree);
}

TEST_CASE("cross device: an empty value, and one result per input") {
  const auto tree = cross_device_communicator(HierarchicalCopyAllReduce(3), virtual_cpus(2));
  at::Tensor out;
  wait(tree->all_reduce(local_group(2), Reduce::sum, {at::empty({0, 4}), at::empty({0, 4})}, out));
  CHECK(out.sizes() == at::IntArrayRef({0, 4}));
  DeviceReducer* reducer = device_reducer(*tree);
  REQUIRE(reducer);
  const auto each = reducer->all_reduce_each(Reduce::sum, {at::ones({5}), at::ones({5})});
  REQUIRE(each.size() == 2);
  CHECK(difference(each[1], at::full({5}, 2.f)) == "");
  CHECK_FALSE(device_reducer(*local_communicator()));
}

TEST_CASE("cross device: NCCL falls back on CPUs, with at most one warning") {
  const Warnings warnings;
  const auto first = cross_device_communicator(NcclAllReduce(), virtual_cpus(2));
  cross_device_communicator(NcclAllReduce(), virtual_cpus(2));
  CHECK(first->name() == "ReductionToOneDevice");
  CHECK(warnings.lines() <= 1);
}

TEST_CASE("cross device: invalid arguments are refused") {
  CHECK_THROWS_WITH(NcclAllReduce(-1),
                    "[NcclAllReduce] num_packs is not negative. Received: -1. To fix: pass "
                    "the number of packs that a value is split into.");
  CHECK_THROWS_AS(cross_device_communicator(ReductionToOneDevice("tpu:0"), virtual_cpus(1)),
                  MeshError);
  const auto tree = cross_device_communicator(HierarchicalCopyAllReduce(), virtual_cpus(2));
  tree->abort("disk full");
  at::Tensor out;
  CHECK_THROWS_AS(tree->all_reduce(local_group(1), Reduce::sum, {at::ones({1})}, out), CommError);
}

TEST_CASE("cross device: a model trains equally under each kind") {
  const Warnings quiet;
  const int64_t devices = GENERATE(2, 3, 5);
  const std::vector<at::Tensor> expected = weights_after(create_mesh({{"batch", devices}}));
  const std::vector<CrossDeviceOps> all = {NcclAllReduce(2), HierarchicalCopyAllReduce(3),
                                           ReductionToOneDevice()};
  for (const CrossDeviceOps& ops : all) {
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < devices; ++id) ids.push_back(id);
    const std::vector<Device> cpus = virtual_cpus(devices);
    const Mesh mesh =
        create_mesh_part({{"batch", devices}}, ids, cpus, cross_device_communicator(ops, cpus));
    const std::vector<at::Tensor> actual = weights_after(mesh);
    REQUIRE(actual.size() == expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      CHECK(at::allclose(actual[i], expected[i], 1e-10, 1e-12));
    }
  }
}

}  // namespace cross_device_test
