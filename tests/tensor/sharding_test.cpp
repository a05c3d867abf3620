#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

#include <ATen/ATen.h>

#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace sharding_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Intervals = std::vector<Interval>;

std::vector<Intervals> intervals(const ShardingPtr& sharding) {
  std::vector<Intervals> list;
  for (const BlockInfo& block : sharding->blocks) list.push_back(block.intervals);
  return list;
}

std::vector<std::vector<int>> devices(const ShardingPtr& sharding) {
  std::vector<std::vector<int>> list;
  for (const BlockInfo& block : sharding->blocks) list.push_back(block.devices);
  return list;
}

/// Returns the intervals of each device by the definition of a layout.
Intervals shard_of(const Layout& layout, const Shape& shape, int64_t device) {
  const std::vector<int64_t> at = layout.mesh().coordinates(device);
  Intervals mine;
  for (int64_t a = 0; a < layout.rank(); ++a) {
    int64_t shard = 0;
    for (int dim : layout.axis(a)) {
      shard = shard * layout.mesh().dim_size(dim) + at[static_cast<size_t>(dim)];
    }
    mine.push_back(shard_interval(shape[static_cast<size_t>(a)], layout.num_shards(a), shard));
  }
  return mine;
}

/// Empty if each device is in one block, and the blocks are what their devices hold.
std::string wrong_blocks(const Shape& shape, const Layout& layout) {
  const ShardingPtr sharding = intern(shape, at::kFloat, layout);
  const Mesh& mesh = layout.mesh();
  std::set<int> seen;
  for (const BlockInfo& block : sharding->blocks) {
    Intervals hull(shape.size(), {INT64_MAX, INT64_MIN});
    std::set<Intervals, bool (*)(const Intervals&, const Intervals&)> shards(
        [](const Intervals& x, const Intervals& y) {
          return std::lexicographical_compare(
              x.begin(), x.end(), y.begin(), y.end(),
              [](Interval i, Interval j) { return std::pair(i.lo, i.hi) < std::pair(j.lo, j.hi); });
        });
    for (int device : block.devices) {
      seen.insert(device);
      const int64_t id = mesh.local_ids()[static_cast<size_t>(device)];
      const Intervals shard = shard_of(layout, shape, id);
      shards.insert(shard);
      for (size_t a = 0; a < shape.size(); ++a) {
        hull[a] = {std::min(hull[a].lo, shard[a].lo), std::max(hull[a].hi, shard[a].hi)};
      }
      const int index = sharding->block_of(mesh.coordinates(id));
      if (&sharding->blocks[static_cast<size_t>(index)] != &block) return "block_of is wrong";
    }
    if (hull != block.intervals) return "a block is not what its devices hold";
    int64_t volume = 0, block_volume = 1;
    for (const Intervals& shard : shards) {
      int64_t n = 1;
      for (Interval side : shard) n *= side.size();
      volume += n;
    }
    for (Interval side : block.intervals) block_volume *= side.size();
    if (volume != block_volume) return "a block holds more than its devices";
    if (block.empty != (block_volume == 0)) return "empty is wrong";
  }
  if (seen.size() != mesh.local_ids().size()) return "a device has no block";
  return "";
}

std::string wrong_mesh(const Mesh& mesh, int64_t rank) {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Layout& layout : all_layouts(mesh, rank)) {
      for (int64_t n : {0, 1, 3, 8, 11}) {
        Shape shape(static_cast<size_t>(rank), n);
        if (rank > 1) shape[1] = 5;
        const std::string wrong = wrong_blocks(shape, layout);
        if (!wrong.empty()) {
          return str(mesh.describe(), " ", layout.describe(), " ", to_string(shape), " ",
                     test::to_string(policy), ": ", wrong);
        }
      }
    }
  }
  return "";
}

const std::vector<MeshDims> meshes = {{{"a", 2}},
                                      {{"a", 3}},
                                      {{"a", 8}},
                                      {{"a", 2}, {"b", 2}},
                                      {{"a", 2}, {"b", 4}},
                                      {{"a", 4}, {"b", 2}},
                                      {{"a", 2}, {"b", 3}, {"c", 2}}};

}  // namespace

TEST_CASE("blocks are what their devices hold, under every policy") {
  for (const MeshDims& dims : meshes) {
    for (int64_t rank : {1, 2}) CHECK(wrong_mesh(create_mesh(dims), rank) == "");
  }
}

TEST_CASE("blocks of processes are what their devices hold") {
  for (const MeshDims& dims : meshes) {
    for (int ranks : {2, 4}) {
      const int64_t size = create_mesh(dims).size();
      if (size % ranks != 0 || (dims[0].second % ranks != 0 && ranks % dims[0].second != 0) ||
          size == 12) {
        continue;
      }
      CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& communicator) {
        const std::string wrong = wrong_mesh(rank_mesh(dims, communicator), 2);
        expect(wrong.empty(), wrong);
      }));
    }
  }
}

TEST_CASE("per_device gives every device a block") {
  const BlockPolicyScope scope(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});
  const ShardingPtr sharding = intern({5}, at::kFloat, Layout(LayoutSpec{"a"}, mesh));
  CHECK(devices(sharding) == std::vector<std::vector<int>>{{0}, {1}, {2}, {3}});
  CHECK(intervals(sharding) == std::vector<Intervals>{{{0, 2}}, {{0, 2}}, {{2, 5}}, {{2, 5}}});
}

TEST_CASE("per_shard gives replicas a common block") {
  const BlockPolicyScope scope(BlockPolicy::per_shard);
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 4}});
  CHECK(devices(intern({5}, at::kFloat, Layout(LayoutSpec{"a"}, mesh))) ==
        std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  const ShardingPtr inner = intern({3}, at::kFloat, Layout(LayoutSpec{"b"}, mesh));
  CHECK(devices(inner) == std::vector<std::vector<int>>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(intervals(inner) == std::vector<Intervals>{{{0, 0}}, {{0, 1}}, {{1, 2}}, {{2, 3}}});
  CHECK(inner->blocks[0].empty);
  CHECK_FALSE(inner->blocks[1].empty);
  CHECK(intern({3}, at::kFloat, Layout::replicated(mesh, 1))->blocks.size() == 1);
  const Layout pending = Layout::replicated(mesh, 1).with_partial(2, Reduce::sum);
  CHECK(intern({3}, at::kFloat, pending)->blocks.size() == 4);
}

TEST_CASE("per_worker gives every worker one block of neighbouring shards") {
  const BlockPolicyScope scope(BlockPolicy::per_worker);
  const int64_t workers = worker_count();
  const Mesh mesh = create_mesh({{"a", 8}});
  const size_t expected = static_cast<size_t>(std::min<int64_t>(8, workers));
  const ShardingPtr sharded = intern({16, 3}, at::kFloat, Layout(LayoutSpec{"a", nullptr}, mesh));
  CHECK(sharded->blocks.size() == expected);
  CHECK(sharded->blocks.back().intervals[0].hi == 16);
  CHECK(sharded->blocks.back().devices.back() == 7);
  CHECK(intern({16}, at::kFloat, Layout::replicated(mesh, 1))->blocks.size() == 1);
  const Layout pending = Layout::replicated(mesh, 1).with_partial(1, Reduce::sum);
  CHECK(intern({16}, at::kFloat, pending)->blocks.size() == expected);
  const Layout grid(LayoutSpec{"a", "b"}, create_mesh({{"a", 4}, {"b", 4}}));
  CHECK(int64_t(intern({16, 16}, at::kFloat, grid)->blocks.size()) <= workers);
}

TEST_CASE("refine splits the more significant dimension of an axis that is not one interval") {
  const Mesh mesh = create_mesh({{"a", 4}, {"b", 4}});
  const Layout both(LayoutSpec{{"a", "b"}}, mesh);
  const auto refined = [&](Groups groups) {
    refine(both, groups);
    return groups;
  };
  CHECK(refined({2, 1}) == Groups{2, 1});
  CHECK(refined({2, 2}) == Groups{4, 2});
  CHECK(refined({4, 2}) == Groups{4, 2});
  CHECK(refined({1, 4}) == Groups{4, 4});
  CHECK(refined({1, 1}) == Groups{1, 1});
}

TEST_CASE("equal shardings are one object") {
  const Mesh mesh = create_mesh({{"a", 2}}), same = create_mesh({{"a", 2}});
  const ShardingPtr one = intern({4}, at::kFloat, Layout(LayoutSpec{"a"}, mesh));
  CHECK(one == intern({4}, at::kFloat, Layout(LayoutSpec{"a"}, same)));
  CHECK(one != intern({5}, at::kFloat, Layout(LayoutSpec{"a"}, mesh)));
  CHECK(one != intern({4}, at::kDouble, Layout(LayoutSpec{"a"}, mesh)));
  CHECK(one != intern({4}, at::kFloat, Layout::replicated(mesh, 1)));
  for (int64_t n = 0; n < 5000; ++n) intern({n}, at::kFloat, Layout::replicated(mesh, 1));
  CHECK(one == intern({4}, at::kFloat, Layout(LayoutSpec{"a"}, mesh)));
}

TEST_CASE("shard_bytes counts the largest shard") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 4}});
  CHECK(shard_bytes({5, 6}, at::kFloat, Layout(LayoutSpec{"a", "b"}, mesh)) == 3 * 2 * 4);
  CHECK(shard_bytes({5, 6}, at::kHalf, Layout(LayoutSpec{{"a", "b"}, nullptr}, mesh)) == 6 * 2);
  CHECK(shard_bytes({0, 6}, at::kHalf, Layout::replicated(mesh, 2)) == 0);
  CHECK(shard_bytes({}, at::kDouble, Layout::replicated(mesh, 0)) == 8);
}

TEST_CASE("block policies nest") {
  const BlockPolicy outside = block_policy();
  {
    const BlockPolicyScope one(BlockPolicy::per_shard);
    {
      const BlockPolicyScope two(BlockPolicy::per_device);
      CHECK(block_policy() == BlockPolicy::per_device);
    }
    CHECK(block_policy() == BlockPolicy::per_shard);
  }
  CHECK(block_policy() == outside);
}

TEST_CASE("a layout must name every axis") {
  const Mesh mesh = create_mesh({{"a", 2}});
  CHECK_THROWS_AS(intern({4}, at::kFloat, Layout()), LayoutError);
  CHECK_THROWS_WITH(intern({4, 4}, at::kFloat, Layout(LayoutSpec{"a"}, mesh)),
                    "[layout] a layout names every axis of its tensor. Received: layout (a) for "
                    "shape (4, 4). To fix: give it 2 entries.");
}

}  // namespace sharding_test
