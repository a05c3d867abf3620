#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"

namespace pack_rows_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns one process' part of a mesh, without the other processes.
Mesh part(const MeshDims& dims, int64_t processes, int64_t rank) {
  int64_t size = 1;
  for (const auto& dim : dims) size *= dim.second;
  const Interval mine = shard_interval(size, processes, rank);
  std::vector<int64_t> ids;
  for (int64_t id = mine.lo; id < mine.hi; ++id) ids.push_back(id);
  return create_mesh_part(dims, ids, virtual_cpus(mine.size()), nullptr);
}

/// Returns the difference of a tensor packed from this process' rows only; "" if none.
std::string wrong_pack(const at::Tensor& full, const Layout& layout) {
  const int64_t rows = full.size(0);
  const Interval mine = axis_interval(layout, 0, rows, layout.mesh().local_box());
  at::Tensor here = full.narrow(0, mine.empty() ? 0 : mine.lo, mine.size()).clone();
  const DTensor packed = pack_rows(std::move(here), mine, rows, layout);
  if (packed.shape() != full.sizes().vec()) return "shape " + to_string(packed.shape());
  return test::wrong_shards(packed, full);
}

}  // namespace

TEST_CASE("the rows of a process make the same shards as all rows") {
  const MeshDims dims = {{"x", 4}, {"y", 2}};
  for (const BlockPolicy policy : test::policies) {
    const BlockPolicyScope blocks(policy);
    for (const int64_t processes : {1, 2, 4, 8}) {
      for (int64_t rank = 0; rank < processes; ++rank) {
        const Mesh mesh = part(dims, processes, rank);
        for (const Layout& layout : test::all_layouts(mesh, 2)) {
          // Even, uneven, and fewer rows than shards.
          for (const int64_t rows : {8, 11, 3, 1}) {
            CAPTURE(test::to_string(policy), processes, rank, layout.describe(), rows);
            CHECK(wrong_pack(at::arange(rows * 5).reshape({rows, 5}), layout) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("rows that nobody else holds are split into views") {
  const BlockPolicyScope per_shard(BlockPolicy::per_shard);
  const Layout layout({"x"}, part({{"x", 4}}, 2, 1));
  at::Tensor rows = at::arange(4);
  const int64_t* memory = rows.const_data_ptr<int64_t>();
  const DTensor taken = pack_rows(std::move(rows), {4, 8}, 8, layout);
  CHECK(taken.blocks()[0].const_data_ptr<int64_t>() == memory);
  CHECK(taken.blocks()[1].const_data_ptr<int64_t>() == memory + 2);
  at::Tensor mine = at::arange(4);
  const at::Tensor held = mine;
  const DTensor copied = pack_rows(std::move(mine), {4, 8}, 8, layout);
  CHECK(copied.blocks()[0].const_data_ptr<int64_t>() != held.const_data_ptr<int64_t>());
  CHECK(test::wrong_shards(copied, at::cat({at::zeros({4}, at::kLong), held})) == "");
}

TEST_CASE("a process may hold more rows than its shards need") {
  const Layout layout({"x"}, part({{"x", 4}}, 2, 1));
  CHECK(test::wrong_shards(pack_rows(at::arange(2, 8), {2, 8}, 8, layout), at::arange(8)) == "");
}

TEST_CASE("invalid rows are refused") {
  const Layout layout({"x"}, part({{"x", 4}}, 2, 1));
  CHECK_THROWS_WITH(
      pack_rows(at::arange(4), {0, 4}, 8, layout),
      Contains("[pack_rows] this process's shards need rows [4, 8)") && Contains("rows [0, 4)"));
  CHECK_THROWS_WITH(pack_rows(at::arange(3), {4, 8}, 8, layout), Contains("shape (3,)"));
  CHECK_THROWS_AS(pack_rows(at::zeros({4, 2}), {4, 8}, 8, layout), LayoutError);
  CHECK_THROWS_AS(pack_rows(at::Tensor(), {4, 8}, 8, layout), ShapeError);
}

}  // namespace pack_rows_test
