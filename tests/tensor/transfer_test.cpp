#include <tessera/framework/tensor/internal/transfer.hpp>

#include <ATen/ATen.h>

#include <random>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace transfer_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

const MeshDims dims = {{"stage", 3}, {"batch", 2}, {"model", 2}};

/// Draws views, layouts and shapes; equal on all ranks that have the same seed.
class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(n)); }

  Mesh view(const Mesh& mesh) {
    MeshDims at;
    for (const auto& [name, size] : mesh.dims()) {
      if (below(2)) at.emplace_back(name, below(size));
    }
    return mesh.view(at);
  }
  /// A layout that needs no other view's elements.
  Layout layout(const Mesh& mesh, int64_t rank) {
    std::vector<std::vector<int>> axes(static_cast<size_t>(rank));
    for (int d = 0; d < mesh.rank(); ++d) {
      const int64_t axis = below(rank + 1);
      if (axis < rank && !(mesh.fixed_dims() >> d & 1)) axes[size_t(axis)].push_back(d);
    }
    return Layout::from_axes(mesh, axes);
  }
  /// Sums over some of the dimensions that shard nothing.
  Layout partial(const Layout& layout) {
    DimMask sums = static_cast<DimMask>(below(8));
    sums &= ~(layout.used_dims() | layout.mesh().fixed_dims());
    return layout.with_partial(sums, Reduce::sum);
  }
  Shape shape(int64_t rank) {
    Shape shape;
    for (int64_t a = 0; a < rank; ++a) shape.push_back(below(8));
    return shape;
  }

 private:
  std::mt19937 random_;
};

/// Transfers between a random pair of views and layouts; returns what is wrong.
std::string wrong_transfer(const Mesh& mesh, uint32_t seed) {
  Draws draws(seed);
  const Mesh from = draws.view(mesh), to = draws.view(mesh);
  const int64_t rank = draws.below(4);
  const Shape shape = draws.shape(rank);
  const Layout source = draws.partial(draws.layout(from, rank)), target = draws.layout(to, rank);
  const TestValue value = test_value(shape, source, seed);
  const std::string wrong = wrong_shards(transfer_value(value.value, target), value.full);
  if (wrong.empty()) return "";
  return str("seed ", seed, ", ", tessera::to_string(shape), " ", source.describe(), " on ",
             from.describe(), " to ", target.describe(), " on ", to.describe(), ": ", wrong);
}

constexpr uint32_t pairs = 200;

}  // namespace

TEST_CASE("a transfer equals the full value, packed, in random pairs of views and layouts") {
  const Mesh mesh = create_mesh(dims);
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    INFO(to_string(policy));
    for (uint32_t seed = 0; seed < pairs; ++seed) REQUIRE(wrong_transfer(mesh, seed) == "");
  }
}

TEST_CASE("processes transfer what one process does") {
  for (int ranks : {2, 3, 4, 6}) {
    if (!can_host(dims, ranks)) continue;
    INFO(ranks);
    CHECK_NOTHROW(run_ranks(ranks, [](int, const auto& communicator) {
      const Mesh mesh = rank_mesh(dims, communicator);
      for (uint32_t seed = 0; seed < pairs; ++seed) {
        const std::string wrong = wrong_transfer(mesh, seed);
        expect(wrong.empty(), wrong);
      }
    }));
  }
}

TEST_CASE("what is replicated travels once, in shares, and is gathered there") {
  const Mesh mesh = create_mesh(dims);
  const Mesh first = mesh.view({{"stage", 0}}), second = mesh.view({{"stage", 1}});
  const at::Tensor full = small_integers({4, 6}, 1);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor x = pack(full, Layout(LayoutSpec{"batch", nullptr}, first));
  const DTensor y = transfer_value(x, Layout(LayoutSpec{"batch", nullptr}, second));
  CHECK(wrong_shards(y, full) == "");
  REQUIRE(log.entries().size() == 2);
  CHECK(log.entries()[0].op == CommOp::transfer);
  CHECK(log.entries()[0].dims == "stage");
  CHECK(log.entries()[0].received == 4 * 6 * 4 / 2 / 2);
  CHECK(log.entries()[1].op == CommOp::all_gather);
  CHECK(log.entries()[1].dims == "model");
  log.clear();
  // A partial sum is only reduce-scattered before.
  const DTensor sums =
      test_value({4, 6}, Layout(LayoutSpec{"batch", nullptr}, second).with_partial(4, Reduce::sum),
                 2)
          .value;
  transfer_value(sums, Layout(LayoutSpec{"batch", nullptr}, first));
  REQUIRE(log.entries().size() == 3);
  CHECK(log.entries()[0].op == CommOp::reduce_scatter);
  CHECK(log.entries()[1].op == CommOp::transfer);
  CHECK(log.entries()[1].received == 4 * 6 * 4 / 2 / 2);
  CHECK(log.entries()[2].op == CommOp::all_gather);
  log.clear();
  // Each device has its own shard of the narrower view.
  const DTensor whole = pack(full, Layout::replicated(mesh, 2));
  transfer_value(whole, Layout(LayoutSpec{"batch", "model"}, second));
  CHECK(log.entries().empty());
}

TEST_CASE("a plan logs the transfers that are made") {
  const Mesh mesh = create_mesh(dims);
  const Layout here(LayoutSpec{"batch", nullptr}, mesh.view({{"stage", 0}}));
  const Layout there(LayoutSpec{nullptr, "model"}, mesh.view({{"stage", 2}}));
  CommLog made, planned;
  {
    const CommLogScope scope(made);
    transfer_value(pack(small_integers({4, 6}, 1), here), there);
  }
  {
    const AbstractScope abstract(mesh);
    const CommLogScope scope(planned);
    const ShardingPtr sharding = intern({4, 6}, at::kFloat, abstract_layout(here));
    const DTensor value = transfer_value(DTensor(sharding, {}), there);
    CHECK(value.mesh() == abstract_mesh().view({{"stage", 2}}));
  }
  CHECK(made.to_string() == planned.to_string());
  CHECK_FALSE(made.entries().empty());
}

TEST_CASE("shards along a dimension that both views fix stay where they are") {
  const Mesh mesh = create_mesh({{"stage", 2}, {"microbatch", 3}, {"batch", 2}});
  const at::Tensor full = small_integers({7, 2}, 1);
  for (int64_t i = 0; i < 3; ++i) {
    const Mesh here = mesh.view({{"stage", 0}, {"microbatch", i}});
    const Mesh there = mesh.view({{"stage", 1}, {"microbatch", i}});
    const LayoutSpec rows = {{"microbatch", "batch"}, nullptr};
    const DTensor x = pack(full, Layout(rows, here));
    CHECK(wrong_shards(transfer_value(x, Layout(rows, there)), full) == "");
    CHECK_THROWS_WITH(x.full(), Contains("microbatch") && Contains("one coordinate"));
    const Mesh other = mesh.view({{"stage", 1}, {"microbatch", (i + 1) % 3}});
    CHECK_THROWS_AS(transfer_value(x, Layout(rows, other)), MeshError);
    const Layout sums = Layout::replicated(here, 2).with_partial(0b010, Reduce::sum);
    const DTensor addend = test_value({4, 2}, sums, 3).value;
    const Layout stays = Layout::replicated(there, 2).with_partial(0b010, Reduce::sum);
    CHECK(transfer_value(addend, stays).layout() == stays);
    CHECK_THROWS_AS(transfer_value(addend, Layout::replicated(there, 2)), LayoutError);
  }
}

TEST_CASE("a transfer is refused for a layout of another rank") {
  const Mesh mesh = create_mesh(dims);
  const DTensor x = pack(at::ones({4}), Layout::replicated(mesh.view({{"stage", 0}}), 1));
  CHECK_THROWS_AS(transfer_value(x, Layout::replicated(mesh.view({{"stage", 1}}), 2)), LayoutError);
}

}  // namespace transfer_test
