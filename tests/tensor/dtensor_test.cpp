#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace dtensor_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});

}  // namespace

TEST_CASE("a DTensor has the global shape and values") {
  const DTensor x = pack(at::ones({3, 5}, at::kDouble), Layout(LayoutSpec{"a", "b"}, mesh));
  CHECK(x.shape() == Shape{3, 5});
  CHECK(x.rank() == 2);
  CHECK(x.size(-1) == 5);
  CHECK(x.numel() == 15);
  CHECK(x.dtype() == at::kDouble);
  CHECK(x.mesh() == mesh);
  CHECK_THROWS_AS(x.size(2), ShapeError);
}

TEST_CASE("full() and local() return the value in every layout, under every policy") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Layout& layout : all_layouts(mesh, 2)) {
      for (const Shape& shape : {Shape{5, 3}, Shape{1, 4}, Shape{0, 2}}) {
        const TestValue sample = test_value(shape, layout, 1);
        INFO(layout.describe() << " of " << tessera::to_string(shape));
        CHECK(wrong_shards(sample.value, sample.full) == "");
        CHECK(difference(sample.value.full(), sample.full) == "");
      }
    }
  }
}

TEST_CASE("local() never communicates and refuses partial values") {
  const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
  const DTensor value = test_value({4}, pending, 1).value;
  CommLog log;
  const CommLogScope scope(log);
  CHECK_THROWS_WITH(value.local(0),
                    "[DTensor::local] the value must be complete here, not a partial sum. "
                    "Received: (unsharded) +sum over a. To fix: call full() or relayout() on every "
                    "process first.");
  CHECK_THROWS_AS(value.local(0), StateError);
  const DTensor done = pack(at::ones({4}), Layout(LayoutSpec{"a"}, mesh));
  CHECK_THROWS_AS(done.local(4), MeshError);
  CHECK_THROWS_AS(done.local(-1), MeshError);
  CHECK(log.entries().empty());
}

TEST_CASE("item() reads one element of a resolved value and never communicates") {
  CHECK(scalar(2.5, mesh).item() == 2.5);
  CHECK(pack(at::full({1, 1}, 7, at::kLong), Layout::replicated(mesh, 2)).item<int64_t>() == 7);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor pending =
      test_value({}, Layout::replicated(mesh, 0).with_partial(1, Reduce::sum), 1).value;
  CHECK_THROWS_WITH(
      pending.item(),
      "[DTensor::item] the value must be complete on this device. Received: layout () "
      "+sum over a. To fix: call full() on every process first.");
  CHECK_THROWS_AS(pending.item(), StateError);
  CHECK_THROWS_AS(pack(at::ones({1}), Layout(LayoutSpec{"a"}, mesh)).item(), StateError);
  CHECK_THROWS_AS(pack(at::ones({2}), Layout::replicated(mesh, 1)).item(), ShapeError);
  CHECK(log.entries().empty());
  resolve(pending);
  CHECK(pending.item() == pending.full().item<double>());
}

TEST_CASE("text shows the numbers only of resolved values") {
  CHECK(DTensor().to_string() == "DTensor()");
  const std::string full = scalar(3, mesh).to_string();
  CHECK(full.find("DTensor(shape=(), dtype=float32, layout=()\n3") == 0);
  CHECK(pack(at::ones({2}), Layout(LayoutSpec{"a"}, mesh)).to_string() ==
        "DTensor(shape=(2,), dtype=float32, layout=(a))");
}

TEST_CASE("copies share one value, and replace() reaches all of them") {
  const DTensor x = pack(at::arange(4), Layout(LayoutSpec{"a"}, mesh));
  const DTensor copy = x;
  CHECK(copy.id() == x.id());
  const uint64_t id = x.id();
  x.replace(pack(at::arange(4), Layout::replicated(mesh, 1)));
  CHECK(copy.layout().is_fully_replicated());
  CHECK(copy.id() == id);
  CHECK(DTensor(x.sharding(), x.blocks()).id() != id);
}

TEST_CASE("owns_memory() sees every other holder") {
  const BlockPolicyScope finest(BlockPolicy::per_device);
  const Layout layout(LayoutSpec{"a"}, mesh);
  const DTensor x = pack(at::ones({4}), layout);
  CHECK(x.owns_memory());
  {
    const DTensor copy = x;
    CHECK_FALSE(x.owns_memory());
  }
  {
    const at::Tensor view = x.local(0).view({2, 1});
    CHECK_FALSE(x.owns_memory());
  }
  {
    const at::Tensor block = x.blocks()[1];
    CHECK_FALSE(x.owns_memory());
  }
  CHECK(x.owns_memory());
}

TEST_CASE("in several processes local() and item() refer to local devices") {
  CHECK_NOTHROW(run_ranks(2, [](int rank, const auto& communicator) {
    const Mesh part = rank_mesh({{"a", 2}, {"b", 2}}, communicator);
    const at::Tensor full = small_integers({5, 3}, 2);
    for (const Layout& layout : all_layouts(part, 2)) {
      const DTensor x = pack(full, layout);
      expect(wrong_shards(x, full).empty(), layout.describe());
      expect(x.sharding()->blocks.size() <= 2, "only blocks of this process");
    }
    expect(scalar(rank, part).item<int>() == rank, "item");
    const DTensor sharded = pack(full, Layout(LayoutSpec{"a", nullptr}, part));
    expect(difference(sharded.local(1), rank == 0 ? full.narrow(0, 0, 2) : full.narrow(0, 2, 3))
               .empty(),
           "local");
  }));
}

}  // namespace dtensor_test
