#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>
#include <tessera/framework/mesh/internal/view.hpp>
#include <tessera/framework/mesh/layout.hpp>
#include <tessera/framework/mesh/mesh.hpp>

#include <unordered_map>

#include "tests/support/catch.hpp"

namespace view_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace {

using Ids = std::vector<int64_t>;

const MeshDims dims = {{"stage", 3}, {"batch", 2}, {"model", 2}};
const Mesh mesh = create_mesh(dims);

/// Returns the part of a mesh that rank `rank` of three holds: one stage.
Mesh stage_of(int rank) {
  const auto hosting = default_hosting(dims, 3);
  return create_mesh_part(dims, hosting->devices_of(rank), virtual_cpus(4), nullptr, "", hosting);
}

}  // namespace

TEST_CASE("a view has the dimensions of its mesh and the devices of its coordinates") {
  const Mesh view = mesh.view({{"stage", 1}});
  CHECK(view.dims() == dims);
  CHECK(view.size() == 12);
  CHECK(device_ids(view) == Ids{4, 5, 6, 7});
  CHECK(view.local_ids() == device_ids(view));
  CHECK(view.local_devices().size() == 4);
  CHECK(view.local_box() == std::vector<Interval>{{1, 2}, {0, 2}, {0, 2}});
  CHECK(view.box() == view.local_box());
  CHECK(view.is_local());
  CHECK(view.is_view());
  CHECK(view.fixed_dims() == 0b001);
  CHECK(fixed_coordinates(view) == MeshDims{{"stage", 1}});
  CHECK(view.root() == mesh);
  CHECK(view.describe() == "stage=3, batch=2, model=2 at stage 1");
  CHECK(device_ids(mesh.view({{"model", 1}, {"stage", 2}})) == Ids{9, 11});
  CHECK(device_ids(mesh).size() == 12);
  CHECK_FALSE(mesh.is_view());
}

TEST_CASE("views are equal at equal coordinates of equal meshes") {
  CHECK(mesh.view({{"stage", 1}}) == create_mesh(dims).view({{"stage", 1}}));
  CHECK(mesh.view({{"stage", 1}, {"model", 0}}) == mesh.view({{"model", 0}}).view({{"stage", 1}}));
  CHECK(mesh.view({{"stage", 1}, {"model", 0}}).root() == mesh);
  CHECK_FALSE(mesh.view({{"stage", 1}}) == mesh);
  CHECK_FALSE(mesh.view({{"stage", 1}}) == mesh.view({{"stage", 2}}));
  CHECK_FALSE(mesh.view({{"stage", 1}}) == mesh.view({{"batch", 1}}));
  CHECK(mesh.view({}) == mesh);
  // With the devices of the view alone, the rest of the mesh differs.
  const Mesh part = create_mesh_part(dims, {4, 5, 6, 7}, virtual_cpus(4), nullptr);
  CHECK_FALSE(part.view({{"stage", 1}}) == mesh.view({{"stage", 1}}));
}

TEST_CASE("views of which a process holds nothing differ from each other") {
  const Mesh here = stage_of(0);
  const Mesh second = here.view({{"stage", 1}}), third = here.view({{"stage", 2}});
  CHECK(second.local_ids().empty());
  CHECK(third.local_ids().empty());
  CHECK_FALSE(second.is_local());
  CHECK_FALSE(second == third);
  CHECK_FALSE(second.hash() == third.hash());
  CHECK(device_ids(second) == Ids{4, 5, 6, 7});
  CHECK(here.view({{"stage", 0}}).is_local());
  CHECK_FALSE(Layout({"batch"}, second) == Layout({"batch"}, third));
  CHECK(hosting_of(second)->owner(device_ids(second).front()) == 1);
  std::unordered_map<size_t, Mesh> by_hash;
  for (int64_t stage = 0; stage < 3; ++stage) {
    const Mesh view = here.view({{"stage", stage}});
    CHECK(by_hash.emplace(view.hash(), view).second);
  }
}

TEST_CASE("a dimension of one coordinate fixes nothing") {
  const Mesh flat = create_mesh({{"stage", 1}, {"batch", 2}});
  CHECK(flat.view({{"stage", 0}}) == flat);
  CHECK(fixed_coordinates(flat.view({{"stage", 0}, {"batch", 1}})) == MeshDims{{"batch", 1}});
}

TEST_CASE("a view is refused at coordinates that it does not have") {
  CHECK_THROWS_WITH(mesh.view({{"stage", 3}}),
                    "[mesh] the coordinates along stage are in [0, 3). Received: stage 3 of mesh "
                    "stage=3, batch=2, model=2. To fix: pass a coordinate that the mesh or view "
                    "has.");
  CHECK_THROWS_AS(mesh.view({{"stage", -1}}), MeshError);
  CHECK_THROWS_WITH(mesh.view({{"stag", 0}}), Contains("\"stage\""));
  CHECK_THROWS_WITH(mesh.view({{"stage", 1}}).view({{"stage", 2}}), Contains("[1, 2)"));
  CHECK(mesh.view({{"stage", 1}}).view({{"stage", 1}}) == mesh.view({{"stage", 1}}));
}

TEST_CASE("a view is written with the ids of its devices, and read") {
  for (const MeshDims& at : {MeshDims{{"stage", 1}}, MeshDims{{"model", 0}},
                             MeshDims{{"stage", 2}, {"batch", 0}, {"model", 1}}}) {
    const Mesh view = mesh.view(at);
    const Mesh read = Mesh::from_string(view.to_string());
    CHECK(read.to_string() == view.to_string());
    CHECK(fixed_coordinates(read) == fixed_coordinates(view));
    CHECK(read.local_ids() == view.local_ids());
  }
  CHECK(mesh.view({{"stage", 1}}).to_string() ==
        "|stage=3,batch=2,model=2|4,5,6,7|4,5,6,7|cpu:4,cpu:5,cpu:6,cpu:7");
  CHECK_THROWS_AS(Mesh::from_string("|stage=3,batch=2|1,2|1|cpu:1"), MeshError);
  CHECK_THROWS_AS(Mesh::from_string("|stage=3,batch=2|2,3|1|cpu:1"), MeshError);
  CHECK_THROWS_AS(Mesh::from_string("|stage=3,batch=2|99,3|2|cpu:2"), MeshError);
}

TEST_CASE("the sub-mesh of a view is through its first device") {
  const Mesh sub = mesh.view({{"stage", 1}}).sub_mesh({"batch"});
  CHECK(sub.local_devices() ==
        std::vector<Device>{mesh.local_devices()[4], mesh.local_devices()[6]});
  CHECK_FALSE(sub.is_view());
  const Mesh view = mesh.view({{"stage", 1}}).sub_mesh({"stage", "batch"});
  CHECK(fixed_coordinates(view) == MeshDims{{"stage", 1}});
  CHECK(device_ids(view) == Ids{2, 3});
}

}  // namespace view_test
