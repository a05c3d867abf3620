#include <tessera/framework/tensor/device_memory.hpp>

#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include "tests/support/allocation_counter.hpp"
#include "tests/support/catch.hpp"

namespace device_memory_test {

using namespace tessera;
using namespace tessera::detail;

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

namespace {

/// The most bytes that each device held while f() worked. Nothing counts for no device, and nothing
/// is left out: what f() leaves behind, it never needed more.
std::vector<int64_t> peaks(const Mesh& mesh, const std::function<DTensor()>& f) {
  const test::AllocationCounter allocated;
  const DeviceMemory memory;
  const DTensor made = f();
  std::vector<int64_t> all;
  for (int64_t d = 0; d < mesh.size(); ++d) all.push_back(memory.peak(d));
  CHECK(memory.peak(-1) == 0);
  CHECK(std::accumulate(all.begin(), all.end(), int64_t{0}) == allocated.held());
  return all;
}

}  // namespace

TEST_CASE("what a collective makes counts for the device that gets it") {
  const BlockPolicyScope each(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"a", 4}}, virtual_cpus(4));
  const Layout rows({"a", nullptr}, mesh), columns({nullptr, "a"}, mesh);
  const Layout whole = Layout::replicated(mesh, 2);
  const DTensor cut = pack(at::rand({64, 64}), rows);
  const auto pending = [&] {
    const ShardingPtr form = intern({64, 64}, at::kFloat, whole.with_partial(1, Reduce::sum));
    Blocks addends;
    for (int d = 0; d < 4; ++d) addends.push_back(at::rand({64, 64}));
    return DTensor(form, addends);
  };
  const std::vector<int64_t> all(4, 4 * 64 * 64), part(4, 64 * 64);
  CHECK(peaks(mesh, [&] { return relayout_value(cut, whole); }) == all);
  CHECK(peaks(mesh, [&] { return relayout_value(cut, columns); }) == part);
  const DTensor sum = pending(), other = pending();
  // What a value that is resolved gives up is not the test's to count.
  const Blocks addends = sum.blocks();
  CHECK(peaks(mesh, [&] { return relayout_value(sum, whole); }) == all);
  CHECK(peaks(mesh, [&] { return relayout_value(other, columns); }) == part);
  at::Tensor mine = at::rand({64, 64});
  CHECK(peaks(mesh, [&] { return pack(mine, rows); }) == part);
  CHECK(peaks(mesh, [&] { return filled({64, 64}, 1, at::kFloat, whole); }) == all);
}

TEST_CASE("what is taken over is not kept for the sake of one device") {
  const Mesh mesh = create_mesh({{"a", 4}}, virtual_cpus(4));
  const DeviceMemory memory;
  const DTensor rows = pack(at::rand({64, 64}), Layout({"a", nullptr}, mesh));
  // The whole was there for a moment, beside a part of it.
  std::vector<DTensor> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(ops::add(rows, rows));
  for (int64_t d = 0; d < 4; ++d) CHECK(memory.peak(d) == 6 * 4096);
}

}  // namespace device_memory_test
