#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>

#include "tests/support/catch.hpp"

namespace hosting_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Ids = std::vector<int64_t>;
using Ranks = std::vector<int>;

/// Returns the devices of each rank under the default hosting.
std::vector<Ids> hosted(const MeshDims& dims, int processes) {
  const auto hosting = default_hosting(dims, processes);
  std::vector<Ids> all;
  for (int rank = 0; rank < processes; ++rank) all.push_back(hosting->devices_of(rank));
  return all;
}

/// Whether runs of neighbouring ids form a grid of boxes.
bool has_runs(const MeshDims& dims, int64_t size, int processes) {
  Ranks owners;
  for (int64_t id = 0; id < size; ++id) {
    owners.push_back(static_cast<int>(((id + 1) * processes - 1) / size));
  }
  try {
    const Hosting hosting(dims, owners);
    return true;
  } catch (const MeshError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("processes split the rows of the first dimension") {
  CHECK(hosted({{"batch", 4}, {"model", 2}}, 3) == std::vector<Ids>{{0, 1}, {2, 3}, {4, 5, 6, 7}});
  CHECK(hosted({{"batch", 4}, {"model", 2}}, 2) == std::vector<Ids>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(hosted({{"batch", 8}}, 3) == std::vector<Ids>{{0, 1}, {2, 3, 4}, {5, 6, 7}});
  CHECK(hosted({{"batch", 2}, {"model", 2}}, 1) == std::vector<Ids>{{0, 1, 2, 3}});
  CHECK_FALSE(default_hosting({{"batch", 4}, {"model", 2}}, 3)->is_even());
  CHECK(default_hosting({{"batch", 4}, {"model", 2}}, 2)->is_even());
}

TEST_CASE("more processes than rows split the dimensions after it, too") {
  CHECK(hosted({{"batch", 2}, {"model", 2}}, 4) == std::vector<Ids>{{0}, {1}, {2}, {3}});
  CHECK(hosted({{"batch", 2}, {"model", 4}}, 3) == std::vector<Ids>{{0, 4}, {1, 5}, {2, 3, 6, 7}});
  CHECK(hosted({{"batch", 2}, {"model", 3}}, 4) == std::vector<Ids>{{0}, {1, 2}, {3}, {4, 5}});
  // Boxes with 2 of 12 devices, the average, are not the only ones.
  CHECK_FALSE(default_hosting({{"batch", 4}, {"model", 3}}, 6)->is_even());
}

TEST_CASE("the default hosting is runs of neighbouring ids wherever these form a grid") {
  const std::vector<MeshDims> meshes = {{{"a", 12}},
                                        {{"a", 4}, {"b", 6}},
                                        {{"a", 2}, {"b", 3}, {"c", 4}},
                                        {{"a", 1}, {"b", 5}, {"c", 2}},
                                        {{"a", 3}, {"b", 2}}};
  int runs = 0, others = 0;
  for (const MeshDims& dims : meshes) {
    const int64_t size = create_mesh(dims).size();
    for (int processes = 1; processes <= size; ++processes) {
      if (!has_runs(dims, size, processes)) {
        ++others;
        continue;
      }
      CAPTURE(to_string(dims), processes);
      ++runs;
      const std::vector<Ids> boxes = hosted(dims, processes);
      for (int rank = 0; rank < processes; ++rank) {
        const Interval run = shard_interval(size, processes, rank);
        const Ids& ids = boxes[static_cast<size_t>(rank)];
        CHECK(std::ssize(ids) == run.size());
        CHECK(ids.front() == run.lo);
        CHECK(ids.back() == run.hi - 1);
      }
    }
  }
  CHECK(runs > 30);
  CHECK(others > 10);
}

TEST_CASE("numbers of processes that form no grid are refused, with those that do") {
  CHECK_THROWS_MATCHES(
      default_hosting({{"batch", 2}, {"model", 2}}, 3), MeshError,
      Catch::Message("[mesh] the devices of each process are one box of a grid of the mesh. "
                     "Received: 3 processes with mesh batch=2, model=2. To fix: start 2 or 4 "
                     "processes, or make one of its dimensions at least 3."));
  CHECK_THROWS_AS(default_hosting({{"batch", 4}, {"model", 2}}, 7), MeshError);
  CHECK_THROWS_AS(default_hosting({{"batch", 4}}, 5), MeshError);
}

TEST_CASE("a hosting is a grid of boxes, its ranks in any order") {
  const MeshDims dims = {{"a", 2}, {"b", 2}};
  CHECK(Hosting(dims, {5, 3, 5, 3}).devices_of(3) == Ids{1, 3});
  CHECK(Hosting(dims, {1, 1, 0, 0}).owner(2) == 0);
  const std::vector<Ranks> bad = {{0, 1, 2, 2}, {0, 1, 1, 0}, {0, 0, 0, 1}, {0, 0, 1}, {}};
  for (const Ranks& owners : bad) CHECK_THROWS_AS(Hosting(dims, owners), MeshError);
  CHECK_THROWS_AS(Hosting({{"a", 3}}, {0, 1, 0}), MeshError);
}

TEST_CASE("a mesh knows its hosting, and so do its sub-meshes") {
  const MeshDims dims = {{"batch", 2}, {"model", 4}};
  const auto hosting = default_hosting(dims, 4);
  const auto part = [&](const Ids& ids, const std::shared_ptr<const Hosting>& by) {
    return create_mesh_part(dims, ids, virtual_cpus(std::ssize(ids)), nullptr, "", by);
  };
  const Mesh mesh = part({6, 7}, hosting);
  REQUIRE(hosting_of(mesh));
  CHECK(hosting_of(mesh)->owner(6) == 3);
  CHECK(hosting_of(create_mesh(dims)) == nullptr);
  CHECK(hosting_of(mesh.sub_mesh({"model"}))->owners() == Ranks{2, 2, 3, 3});
  CHECK(hosting_of(mesh.sub_mesh({"batch"}))->owners() == Ranks{1, 3});
  CHECK(mesh == part({6, 7}, default_hosting(dims, 4)));
  CHECK_FALSE(mesh == part({6, 7}, nullptr));
  CHECK_FALSE(mesh ==
              part({6, 7}, std::make_shared<const Hosting>(dims, Ranks{1, 1, 0, 0, 2, 2, 3, 3})));
  CHECK_THROWS_AS(part({4, 5, 6, 7}, hosting), MeshError);
  CHECK_THROWS_AS(part({6}, hosting), MeshError);
}

}  // namespace hosting_test
