#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/halo_exchange.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"

namespace fetch_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns the interval of an axis, with `fill` beyond the ends.
at::Tensor brute_fetch(const at::Tensor& full, int64_t axis, Interval want, double fill) {
  std::vector<int64_t> shape = full.sizes().vec();
  shape[static_cast<size_t>(axis)] = want.size();
  const at::Tensor out = at::full(shape, fill, full.options());
  for (int64_t i = want.lo; i < want.hi; ++i) {
    if (i < 0 || i >= full.size(axis)) continue;
    out.select(axis, i - want.lo).copy_(full.select(axis, i));
  }
  return out;
}

/// Returns the sum over members of their pieces at the axis' global indices.
at::Tensor brute_fetch_add(const at::Tensor& like, int64_t axis,
                           const std::vector<at::Tensor>& pieces,
                           const std::vector<Interval>& requested) {
  const at::Tensor out = at::zeros_like(like);
  for (size_t m = 0; m < requested.size(); ++m) {
    for (int64_t i = requested[m].lo; i < requested[m].hi; ++i) {
      if (i < 0 || i >= like.size(axis)) continue;
      out.select(axis, i).add_(pieces[m].select(axis, i - requested[m].lo));
    }
  }
  return out;
}

/// Intervals anywhere from before the axis to beyond it; some empty.
std::vector<Interval> random_intervals(size_t count, int64_t extent, int64_t seed) {
  const at::Tensor draw = small_integers({static_cast<int64_t>(count), 2}, seed).add(8);
  std::vector<Interval> list;
  for (size_t m = 0; m < count; ++m) {
    const int64_t i = static_cast<int64_t>(m);
    const int64_t lo = draw[i][0].item<int64_t>() % (extent + 5) - 3;
    list.push_back({lo, lo + draw[i][1].item<int64_t>() % (extent + 4)});
  }
  return list;
}

at::Tensor other_axes(const at::Tensor& full, int64_t axis, const BlockInfo& block) {
  at::Tensor part = full;
  for (int64_t a = 0; a < full.dim(); ++a) {
    const Interval have = block.intervals[static_cast<size_t>(a)];
    if (a != axis) part = part.narrow(a, have.lo, have.size());
  }
  return part;
}

/// Empty if gather_intervals() and scatter_add_intervals() along the axis equal brute force.
std::string wrong_fetch(const Shape& shape, const Layout& layout, int64_t axis, int64_t seed) {
  const at::Tensor full = small_integers(shape, seed);
  const DTensor x = pack(full, layout);
  const Sharding& sharding = *x.sharding();
  const AxisShards shards = axis_shards(sharding, axis);
  const std::vector<int64_t> members = block_members(sharding, axis);
  const int64_t extent = shape[static_cast<size_t>(axis)];
  const std::vector<Interval> requested = random_intervals(shards.have.size(), extent, seed);
  const std::string where = str(layout.describe(), " of ", to_string(shape), " axis ", axis);

  const Blocks got = gather_intervals(x, axis, requested, -99);
  std::vector<at::Tensor> pieces;
  for (size_t m = 0; m < requested.size(); ++m) {
    Shape piece = shape;
    piece[static_cast<size_t>(axis)] = requested[m].size();
    pieces.push_back(small_integers(piece, seed + 1000 * static_cast<int64_t>(m + 1)));
  }
  Blocks mine;
  for (size_t b = 0; b < got.size(); ++b) {
    const BlockInfo& block = sharding.blocks[b];
    const size_t m = static_cast<size_t>(members[b]);
    const at::Tensor part = other_axes(full, axis, block);
    const std::string wrong = difference(got[b], brute_fetch(part, axis, requested[m], -99));
    if (!wrong.empty()) return where + " fetch: " + wrong;
    mine.push_back(other_axes(pieces[m], axis, block));
  }
  const at::Tensor sum = brute_fetch_add(full, axis, pieces, requested);
  const Blocks added = scatter_add_intervals(sharding, mine, shards, requested);
  for (size_t b = 0; b < added.size(); ++b) {
    const std::string wrong = difference(added[b], cut(sum, sharding.blocks[b].intervals));
    if (!wrong.empty()) return where + " fetch_add: " + wrong;
  }
  return "";
}

std::string wrong_mesh(const Mesh& mesh, const std::vector<int64_t>& extents, int64_t draws) {
  int64_t seed = 0;
  for (const Layout& layout : all_layouts(mesh, 2)) {
    for (int64_t n : extents) {
      for (int64_t draw = 0; draw < draws; ++draw) {
        for (int64_t axis : {0, 1}) {
          const Shape shape = axis == 0 ? Shape{n, 3} : Shape{3, n};
          const std::string wrong = wrong_fetch(shape, layout, axis, ++seed);
          if (!wrong.empty()) return mesh.describe() + " " + wrong;
        }
      }
    }
  }
  return "";
}

const std::vector<MeshDims> meshes = {{{"a", 2}}, {{"a", 3}},           {{"a", 4}},
                                      {{"a", 8}}, {{"a", 2}, {"b", 2}}, {{"a", 4}, {"b", 2}}};

double dot(const Blocks& x, const Blocks& y) {
  double sum = 0;
  for (size_t b = 0; b < x.size(); ++b) sum += (x[b] * y[b]).sum().item<double>();
  return sum;
}

}  // namespace

TEST_CASE("fetch and fetch_add equal brute force on any intervals") {
  for (const MeshDims& dims : meshes) {
    for (BlockPolicy policy : policies) {
      const BlockPolicyScope scope(policy);
      INFO(test::to_string(policy));
      CHECK(wrong_mesh(create_mesh(dims), {0, 1, 3, 9}, 3) == "");
    }
  }
}

TEST_CASE("fetch and fetch_add between processes equal brute force") {
  for (int ranks : {2, 3, 4}) {
    for (const MeshDims& dims : meshes) {
      if (!can_host(dims, ranks)) continue;
      for (BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
        INFO(ranks << " ranks, mesh " << tessera::to_string(dims));
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const auto& communicator) {
          const BlockPolicyScope scope(policy);
          const std::string wrong = wrong_mesh(rank_mesh(dims, communicator), {1, 2, 9}, 1);
          expect(wrong.empty(), wrong);
        }));
      }
    }
  }
}

TEST_CASE("a window may span several neighbours, both ends and empty shards") {
  const BlockPolicyScope finest(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"a", 5}});
  const Layout layout(LayoutSpec{"a"}, mesh);
  // Extent 3 over 5 shards: [0,0) [0,1) [1,1) [1,2) [2,3).
  const DTensor x = pack(at::tensor({10.f, 20.f, 30.f}), layout);
  const Blocks got = gather_intervals(x, 0, {{-2, 1}, {0, 3}, {2, 2}, {-1, 4}, {3, 5}}, 7);
  CHECK(difference(got[0], at::tensor({7.f, 7.f, 10.f})) == "");
  CHECK(difference(got[1], at::tensor({10.f, 20.f, 30.f})) == "");
  CHECK(got[2].numel() == 0);
  CHECK(difference(got[3], at::tensor({7.f, 10.f, 20.f, 30.f, 7.f})) == "");
  CHECK(difference(got[4], at::tensor({7.f, 7.f})) == "");
}

TEST_CASE("fetch_add is the adjoint of fetch") {
  const Mesh mesh = create_mesh({{"a", 4}, {"b", 2}});
  int64_t seed = 0;
  for (const LayoutSpec& spec : {LayoutSpec{"a", "b"}, LayoutSpec{{"b", "a"}, nullptr}}) {
    const DTensor x = pack(small_integers({9, 6}, 1), Layout(spec, mesh));
    for (int64_t axis : {0, 1}) {
      const AxisShards shards = axis_shards(*x.sharding(), axis);
      const std::vector<Interval> requested =
          random_intervals(shards.have.size(), x.size(axis), ++seed);
      const Blocks fetched = gather_intervals(x, axis, requested);
      Blocks y;
      for (const at::Tensor& block : fetched) {
        y.push_back(small_integers(block.sizes().vec(), ++seed));
      }
      CHECK(dot(fetched, y) ==
            dot(x.blocks(), scatter_add_intervals(*x.sharding(), y, shards, requested)));
    }
  }
}

TEST_CASE("an interval within one block is a view of it") {
  const BlockPolicyScope finest(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"a", 2}});
  const DTensor x = pack(at::arange(8), Layout(LayoutSpec{"a"}, mesh));
  const Blocks got = gather_intervals(x, 0, {{1, 4}, {3, 6}});
  CHECK(got[0].is_alias_of(x.blocks()[0]));
  CHECK_FALSE(got[1].is_alias_of(x.blocks()[1]));
}

TEST_CASE("requested intervals of shards are merged for their block") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 3}});
  const at::Tensor full = small_integers({13, 2}, 4);
  for (const LayoutSpec& spec :
       {LayoutSpec{{"a", "b"}, nullptr}, LayoutSpec{{"b", "a"}, nullptr}}) {
    const Layout layout(spec, mesh);
    for (BlockPolicy policy : policies) {
      const BlockPolicyScope scope(policy);
      const DTensor x = pack(full, layout);
      std::vector<Interval> halo;
      for (Interval have : layout_shards(*x.sharding(), 0).have) {
        halo.push_back({have.lo - 1, have.hi + 2});
      }
      const Blocks got = gather_intervals(x, 0, halo, 5);
      for (size_t b = 0; b < got.size(); ++b) {
        const Interval have = x.sharding()->blocks[b].intervals[0];
        CHECK(difference(got[b], brute_fetch(full, 0, {have.lo - 1, have.hi + 2}, 5)) == "");
      }
    }
  }
}

TEST_CASE("a shard without a requested interval does not enlarge its block's") {
  const BlockPolicyScope scope(BlockPolicy::per_worker);
  const size_t shards = 4 * static_cast<size_t>(worker_count());
  const Mesh mesh = create_mesh({{"a", static_cast<int64_t>(shards)}});
  const DTensor x = pack(at::arange(16), Layout(LayoutSpec{"a"}, mesh));
  std::vector<Interval> requested(shards, {0, 0});
  requested[shards - 2] = {11, 13};
  CHECK(difference(gather_intervals(x, 0, requested).back(), at::tensor({11, 12}, at::kLong)) ==
        "");
}

TEST_CASE("an exchange is logged equally under every policy, forward and backward") {
  const Mesh mesh = create_mesh({{"a", 4}, {"b", 2}});
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    const DTensor x = pack(at::ones({8, 6}), Layout(LayoutSpec{"a", "b"}, mesh));
    const AxisShards shards = layout_shards(*x.sharding(), 0);
    std::vector<Interval> halo;
    for (Interval have : shards.have) halo.push_back({have.lo - 1, have.hi + 1});
    CommLog log;
    const CommLogScope counting(log);
    const Blocks got = gather_intervals(*x.sharding(), x.blocks(), shards, halo, 0);
    REQUIRE(log.entries().size() == 1);
    CHECK(log.count(CommOp::exchange, "a") == 1);
    CHECK(log.entries()[0].members == 4);
    // One row above and one below, of the three columns that a device holds.
    CHECK(log.received() == 2 * 3 * 4);
    scatter_add_intervals(*x.sharding(), got, shards, halo);
    CHECK(log.entries().size() == 2);
    CHECK(log.received() == 2 * (2 * 3 * 4));
    gather_intervals(*x.sharding(), x.blocks(), shards, shards.have, 0);
    CHECK(log.entries().size() == 2);
  }
}

TEST_CASE("fetch resolves a partial value first") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 2}});
  const Layout pending = Layout(LayoutSpec{"a"}, mesh).with_partial(2, Reduce::sum);
  const TestValue sample = test_value({6}, pending, 3);
  const Blocks got = gather_intervals(sample.value, 0, {{0, 6}, {0, 6}});
  for (const at::Tensor& block : got) CHECK(difference(block, sample.full) == "");
  CHECK_FALSE(sample.value.layout().is_partial());
}

TEST_CASE("overlapping pieces of float16 and bfloat16 accumulate in float32") {
  const BlockPolicyScope finest(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"a", 4}});
  const ShardingPtr sharding = intern({4}, at::kHalf, Layout(LayoutSpec{"a"}, mesh));
  Blocks pieces;
  for (double value : {2048.0, 1.0, 1.0, 2.0}) {
    pieces.push_back(at::full({4}, value, at::TensorOptions().dtype(at::kHalf)));
  }
  const std::vector<Interval> all(4, {0, 4});
  const Blocks sum = scatter_add_intervals(*sharding, pieces, axis_shards(*sharding, 0), all);
  CHECK(sum[2].scalar_type() == at::kHalf);
  CHECK(sum[2].item<float>() == 2052);
}

TEST_CASE("fetch names an axis out of range") {
  const DTensor x = pack(at::ones({4}), Layout::replicated(create_mesh({{"a", 2}}), 1));
  CHECK_THROWS_AS(gather_intervals(x, 1, {{0, 4}}), ShapeError);
}

}  // namespace fetch_test
