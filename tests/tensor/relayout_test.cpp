#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace relayout_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

std::vector<Layout> sources(const Mesh& mesh, int64_t rank) {
  std::vector<Layout> list = all_layouts(mesh, rank);
  for (Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
    for (const Layout& layout : pending_layouts(mesh, rank, kind)) list.push_back(layout);
  }
  return list;
}

/// Empty if the relayout gives the right value, with the planned bytes.
std::string wrong_relayout(const Shape& shape, const Layout& from, const Layout& to, int64_t seed) {
  const TestValue sample = test_value(shape, from, seed);
  CommLog log;
  DTensor moved;
  {
    const CommLogScope scope(log);
    moved = relayout_value(sample.value, to);
  }
  const std::string where = str(to_string(shape), " ", from.describe(), " -> ", to.describe());
  if (!(moved.layout() == to)) return where + ": arrives as " + moved.layout().describe();
  const std::string wrong = wrong_shards(moved, sample.full);
  if (!wrong.empty()) return where + ": " + wrong;
  const double planned = relayout_bytes(shape, at::kFloat, from, to);
  if (std::abs(log.received() - planned) > 1e-9) {
    return str(where, ": planned ", planned, " bytes, received ", log.received());
  }
  const std::string wrong_full = difference(moved.full(), sample.full);
  return wrong_full.empty() ? "" : where + " full: " + wrong_full;
}

/// Empty if every pair of layouts does, for every shape of these extents.
std::string wrong_pairs(const Mesh& mesh, int64_t rank, const std::vector<int64_t>& extents) {
  std::vector<Shape> shapes;
  for (int64_t n : extents) {
    if (rank == 1) shapes.push_back({n});
    for (int64_t m : extents) {
      if (rank == 2) shapes.push_back({n, m});
    }
  }
  const std::vector<Layout> targets = all_layouts(mesh, rank);
  int64_t seed = 0;
  for (const Layout& from : sources(mesh, rank)) {
    for (const Layout& to : targets) {
      for (const Shape& shape : shapes) {
        const std::string wrong = wrong_relayout(shape, from, to, ++seed);
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}

/// Checks random samples of rank 3.
std::string wrong_samples(const Mesh& mesh, int64_t count) {
  const std::vector<Layout> from = sources(mesh, 3), to = all_layouts(mesh, 3);
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor draw = small_integers({5}, 1000 + i).add(8).to(at::kLong);
    const auto number = [&](int64_t k) { return draw[k].item<int64_t>(); };
    const Shape shape = {number(0) % 6, 1 + number(1) % 5, 1 + number(2) % 9};
    const size_t a = static_cast<size_t>(i * 7919 + number(3)) % from.size();
    const size_t b = static_cast<size_t>(i * 104729 + number(4)) % to.size();
    const std::string wrong = wrong_relayout(shape, from[a], to[b], i);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// Relays out values made under one block policy under another.
std::string wrong_mixed_policies(const Mesh& mesh) {
  int64_t seed = 0;
  for (BlockPolicy first : policies) {
    for (BlockPolicy second : policies) {
      for (const Layout& from : sources(mesh, 2)) {
        for (const Layout& to : all_layouts(mesh, 2)) {
          TestValue made;
          {
            const BlockPolicyScope scope(first);
            made = test_value({3, 5}, from, ++seed);
          }
          const BlockPolicyScope scope(second);
          const std::string wrong = wrong_shards(relayout_value(made.value, to), made.full);
          if (!wrong.empty()) {
            return str(test::to_string(first), " to ", test::to_string(second), ": ",
                       from.describe(), " -> ", to.describe(), ": ", wrong);
          }
        }
      }
    }
  }
  return "";
}

const std::vector<MeshDims> meshes = {{{"a", 2}}, {{"a", 3}}, {{"a", 4}}, {{"a", 2}, {"b", 2}}};

std::vector<int64_t> extents_for(const Mesh& mesh) {
  const int64_t k = mesh.size();
  return {0, 1, k - 1, k, 7};
}

}  // namespace

TEST_CASE("every pair of layouts gives the same value, with the planned bytes") {
  for (const MeshDims& dims : meshes) {
    const Mesh mesh = create_mesh(dims);
    for (BlockPolicy policy : policies) {
      const BlockPolicyScope scope(policy);
      for (int64_t rank : {0, 1, 2}) {
        INFO(mesh.describe() << " " << test::to_string(policy) << " rank " << rank);
        CHECK(wrong_pairs(mesh, rank, extents_for(mesh)) == "");
      }
    }
  }
}

TEST_CASE("three axes over three mesh dimensions give the same value") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}, {"c", 2}});
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    CHECK(wrong_samples(mesh, 1500) == "");
  }
}

TEST_CASE("processes equal one process in every pair of layouts") {
  for (int ranks : {2, 3, 4}) {
    for (const MeshDims& dims : meshes) {
      if (!can_host(dims, ranks)) continue;
      for (BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        INFO(ranks << " ranks, mesh " << tessera::to_string(dims) << " "
                   << test::to_string(policy));
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& communicator) {
          const BlockPolicyScope scope(policy);
          const Mesh mesh = rank_mesh(dims, communicator);
          for (int64_t rank : {1, 2}) {
            const std::string wrong = wrong_pairs(mesh, rank, {0, 1, 7});
            expect(wrong.empty(), wrong);
          }
        }));
      }
    }
  }
}

TEST_CASE("processes that hold slices of three mesh dimensions give the same value") {
  for (int ranks : {2, 4, 8}) {
    CHECK_NOTHROW(run_ranks(ranks, [](int, const auto& communicator) {
      const Mesh mesh = rank_mesh({{"a", 2}, {"b", 2}, {"c", 2}}, communicator);
      const std::string wrong = wrong_samples(mesh, 300);
      expect(wrong.empty(), wrong);
    }));
  }
}

TEST_CASE("a value made under one block policy relayouts under another") {
  CHECK(wrong_mixed_policies(create_mesh({{"a", 2}, {"b", 2}})) == "");
  CHECK_NOTHROW(run_ranks(2, [](int, const auto& communicator) {
    const std::string wrong = wrong_mixed_policies(rank_mesh({{"a", 2}, {"b", 2}}, communicator));
    expect(wrong.empty(), wrong);
  }));
}

TEST_CASE("a partial value is resolved once, for the handle and its copies") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});
  const Layout pending = Layout::replicated(mesh, 1).with_partial(3, Reduce::sum);
  const TestValue sample = test_value({5}, pending, 2);
  const DTensor copy = sample.value;
  CommLog log;
  const CommLogScope scope(log);
  resolve(sample.value);
  CHECK(log.entries().size() == 1);
  CHECK(log.count(CommOp::all_reduce, "a,b") == 1);
  CHECK(difference(copy.full(), sample.full) == "");
  CHECK(difference(relayout_value(copy, Layout(LayoutSpec{"a"}, mesh)).local(0),
                   sample.full.narrow(0, 0, 2)) == "");
  CHECK(copy.layout() == pending.resolved());
  CHECK(log.entries().size() == 1);
}

TEST_CASE("full() of a partial value resolves it, too") {
  const Mesh mesh = create_mesh({{"a", 3}});
  const TestValue sample =
      test_value({4, 2}, Layout::replicated(mesh, 2).with_partial(1, Reduce::max), 5);
  CommLog log;
  const CommLogScope scope(log);
  CHECK(difference(sample.value.full(), sample.full) == "");
  CHECK(difference(sample.value.full(), sample.full) == "");
  CHECK(log.entries().size() == 1);
}

TEST_CASE("partial sums of float16 and bfloat16 accumulate in float32 and are logged so") {
  const Mesh mesh = create_mesh({{"a", 4}});
  const BlockPolicyScope finest(BlockPolicy::per_device);
  const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
  for (at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    Blocks blocks;
    // 512 + 1 + 1 + 1 stays 512 if bfloat16 rounds after each addition; in float16 2048 does.
    const double large = dtype == at::kHalf ? 2048 : 512;
    for (double addend : {large, 1.0, 1.0, 2.0}) {
      blocks.push_back(at::full({3}, addend, at::TensorOptions().dtype(dtype)));
    }
    for (const Layout& target : {pending.resolved(), Layout(LayoutSpec{"a"}, mesh)}) {
      const DTensor value(intern({3}, dtype, pending), blocks);
      CommLog log;
      const CommLogScope scope(log);
      const DTensor moved = relayout_value(value, target);
      const at::Tensor expected = at::full({3}, large + 4, at::TensorOptions().dtype(dtype));
      CHECK(log.received() == (target.sharded_dims() ? 1 : 2) * 0.75 * 3 * sizeof(float));
      CHECK(moved.dtype() == dtype);
      CHECK(difference(moved.full(), expected) == "");
    }
  }
}

TEST_CASE("a partial value without any part is the identity of its reduction") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});
  for (Reduce kind : {Reduce::sum, Reduce::max, Reduce::min}) {
    const Layout pending = Layout(LayoutSpec{"a"}, mesh).with_partial(2, kind);
    const ShardingPtr sharding = intern({5}, at::kInt, pending);
    const DTensor value(sharding, Blocks(sharding->blocks.size()));
    CHECK(plan_relayout(pending, Layout::replicated(mesh, 1)).size() == 2);
    CHECK(difference(value.full(), reduce_identity(kind, {5}, at::kInt)) == "");
  }
}

TEST_CASE("relayout_to moves a value into the blocks of another sharding") {
  const Mesh mesh = create_mesh({{"a", 4}, {"b", 2}});
  for (const Shape& shape : {Shape{7, 3}, Shape{4, 0}, Shape{0, 5}, Shape{1, 1}}) {
    for (const Layout& layout : all_layouts(mesh, 2)) {
      const at::Tensor full = small_integers(shape, 3);
      for (BlockPolicy first : policies) {
        DTensor value;
        {
          const BlockPolicyScope scope(first);
          value = pack(full, layout);
        }
        for (BlockPolicy second : policies) {
          const BlockPolicyScope scope(second);
          const ShardingPtr target = intern(shape, at::kFloat, layout);
          const DTensor moved = relayout_to(value, target);
          INFO(layout.describe() << " of " << tessera::to_string(shape));
          REQUIRE(moved.sharding() == target);
          for (size_t b = 0; b < target->blocks.size(); ++b) {
            REQUIRE(difference(moved.blocks()[b], cut(full, target->blocks[b].intervals)) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("with world_size_invariant, values that move are in row-major order on any process") {
  const MeshDims dims = {{"x", 4}};
  // Images whose channels are the last axis in memory only, which at::cat would keep so.
  const auto in_order = [](const Mesh& mesh) {
    const WorldSizeInvariantScope on;
    const DTensor rows = pack(at::arange(4 * 6 * 5 * 8, at::kFloat).view({4, 6, 5, 8}),
                              Layout({"x", unsharded, unsharded, unsharded}, mesh));
    Blocks blocks;
    for (const at::Tensor& block : rows.blocks()) {
      blocks.push_back(copy_in_order(block, {0, 2, 3, 1}));
    }
    const DTensor turned(rows.sharding(), blocks);
    const at::Tensor& before = turned.blocks()[0];
    const DTensor gathered = relayout_value(turned, Layout::replicated(mesh, 4));
    const DTensor moved =
        relayout_value(turned, Layout({unsharded, "x", unsharded, unsharded}, mesh));
    return std::vector<bool>{before.is_contiguous(), gathered.blocks()[0].is_contiguous(),
                             moved.blocks()[0].is_contiguous()};
  };
  const std::vector<bool> expected = {false, true, true};
  CHECK(in_order(create_mesh(dims)) == expected);
  CHECK_NOTHROW(run_ranks(2, [&](int, const std::shared_ptr<Communicator>& communicator) {
    expect(in_order(rank_mesh(dims, communicator)) == expected, "in row-major order");
  }));
}

TEST_CASE("relayout refuses other meshes, other ranks and partial targets") {
  const Mesh mesh = create_mesh({{"a", 2}}), other = create_mesh({{"b", 2}});
  const DTensor value = pack(at::ones({4}), Layout(LayoutSpec{"a"}, mesh));
  CHECK_THROWS_AS(relayout_value(value, Layout::replicated(other, 1)), MeshError);
  CHECK_THROWS_AS(relayout_value(value, Layout()), MeshError);
  CHECK_THROWS_AS(relayout_value(value, Layout::replicated(mesh, 2)), LayoutError);
  CHECK_THROWS_AS(relayout_value(value, Layout::replicated(mesh, 1).with_partial(1, Reduce::sum)),
                  LayoutError);
  CHECK_THROWS_WITH(relayout_value(value, Layout::replicated(other, 1)),
                    "[relayout] the layout must be on the value's mesh a=2. Received: mesh b=2. "
                    "To fix: use copy_to_mesh to move a value to another mesh.");
}

}  // namespace relayout_test
