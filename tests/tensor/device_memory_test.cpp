#include <tessera/framework/tensor/device_memory.hpp>

#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include "tests/support/allocation_counter.hpp"
#include "tests/support/catch.hpp"

namespace device_memory_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("device memory counts one scope at a time, and freed memory") {
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

TEST_CASE("virtual devices count as separate devices") {
  const Mesh mesh = create_mesh({{"batch", 4}}, virtual_cpus(4));
  std::optional<DeviceMemory> memory(std::in_place);
  const DTensor rows = pack(at::rand({8, 1000}), Layout::batch_sharded(mesh, "batch", 2));
  const DTensor replicated = pack(at::rand({1000}), Layout::replicated(mesh, 1));
  // The caller of pack holds the full tensor for a moment: not counted here.
  memory.reset();
  memory.emplace();
  const DTensor square_of_rows = ops::square(rows), square_of_replicated = ops::square(replicated);
  // A device holds a quarter of the rows, and all of a replicated value.
  for (int64_t device = 0; device < 4; ++device) CHECK(memory->peak(device) == 8000 + 4000);
}

TEST_CASE("memory counts for its use from when it was made, also at a peak that is over") {
  const at::Tensor before = at::empty({1000});
  DeviceMemory memory;
  const at::Tensor shared = at::empty({1000});
  const DeviceMemory::For device(0);
  const at::Tensor kept = at::empty({4000});
  { const at::Tensor passing = at::empty({2000}); }
  const at::Tensor late = at::empty({500});
  CHECK(memory.at_peak(0).activations == 4000 + 16000 + 8000);
  DeviceMemory::label(kept, MemoryUse::gradients);
  DeviceMemory::label(shared, MemoryUse::weights);
  DeviceMemory::label(late, MemoryUse::slots);
  DeviceMemory::label(before, MemoryUse::slots);
  const auto check = [&](const MemoryByUse& peak, double weights, double gradients, double slots,
                         double activations) {
    CHECK(peak.weights == weights);
    CHECK(peak.gradients == gradients);
    CHECK(peak.slots == slots);
    CHECK(peak.activations == activations);
    CHECK(peak.total() == weights + gradients + slots + activations);
  };
  check(memory.at_peak(0), 4000, 16000, 0, 8000);
  check(memory.at_peak(-1), 4000, 0, 0, 0);
  CHECK(memory.at_peak(0).total() == double(memory.peak(0)));
  // The first use stays.
  DeviceMemory::label(kept.narrow(0, 1000, 10), MemoryUse::slots);
  memory.reset_peaks();
  check(memory.at_peak(0), 4000, 16000, 2000, 0);
  CHECK(memory.peak(0) == 22000);
  // A device that has no memory of its own.
  CHECK(memory.at_peak(3).total() == 4000);
}

TEST_CASE("a weight, its cast and its gathered cast are counted as such") {
  const Mesh mesh = create_mesh({{"a", 4}}, virtual_cpus(4));
  const Layout rows({"a", nullptr}, mesh);
  const at::Tensor numbers = at::rand({64, 64});
  DeviceMemory memory;
  Variable kernel("kernel", pack(numbers, rows));
  kernel.place({.shape = {64, 64}, .layout = rows, .use = Layout::replicated(mesh, 2)});
  memory.reset_peaks();
  const DTensor used = kernel.read(at::kBFloat16);
  for (int64_t d = 0; d < 4; ++d) {
    const MemoryByUse peak = memory.at_peak(d);
    CHECK(peak.weights == 4 * 16 * 64);
    CHECK(peak.casts == 2 * 16 * 64);
    CHECK(peak.gathered == 2 * 64 * 64);
    CHECK(peak.activations == 0);
  }
}

namespace {

/// Returns the peak bytes of each device while f() ran. Checks that all memory counts for a device,
/// and that f()'s result never needed more.
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

TEST_CASE("a collective's result counts for the device that receives it") {
  const BlockPolicyScope each(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"a", 4}}, virtual_cpus(4));
  const Layout rows({"a", nullptr}, mesh), columns({nullptr, "a"}, mesh);
  const Layout replicated = Layout::replicated(mesh, 2);
  const DTensor cut = pack(at::rand({64, 64}), rows);
  const auto pending = [&] {
    const ShardingPtr sharding =
        intern({64, 64}, at::kFloat, replicated.with_partial(1, Reduce::sum));
    Blocks addends;
    for (int d = 0; d < 4; ++d) addends.push_back(at::rand({64, 64}));
    return DTensor(sharding, addends);
  };
  const std::vector<int64_t> all(4, 4 * 64 * 64), part(4, 64 * 64);
  CHECK(peaks(mesh, [&] { return relayout_value(cut, replicated); }) == all);
  CHECK(peaks(mesh, [&] { return relayout_value(cut, columns); }) == part);
  const DTensor sum = pending(), other = pending();
  // The memory that a resolved value releases is not part of this test.
  const Blocks addends = sum.blocks();
  CHECK(peaks(mesh, [&] { return relayout_value(sum, replicated); }) == all);
  CHECK(peaks(mesh, [&] { return relayout_value(other, columns); }) == part);
  at::Tensor mine = at::rand({64, 64});
  CHECK(peaks(mesh, [&] { return pack(mine, rows); }) == part);
  CHECK(peaks(mesh, [&] { return filled({64, 64}, 1, at::kFloat, replicated); }) == all);
}

TEST_CASE("memory that is taken over is not kept for one device") {
  const Mesh mesh = create_mesh({{"a", 4}}, virtual_cpus(4));
  const DeviceMemory memory;
  const DTensor rows = pack(at::rand({64, 64}), Layout({"a", nullptr}, mesh));
  // The full tensor existed for a moment, beside a block of it.
  std::vector<DTensor> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(ops::add(rows, rows));
  for (int64_t d = 0; d < 4; ++d) CHECK(memory.peak(d) == 6 * 4096);
}

}  // namespace device_memory_test
