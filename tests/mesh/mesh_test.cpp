#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/mesh.hpp>

#include "tests/support/catch.hpp"

namespace mesh_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace {

using Ids = std::vector<int64_t>;

Mesh two_by_four_part(const Ids& ids) {
  return create_mesh_part({{"batch", 2}, {"model", 4}}, ids,
                          virtual_cpus(static_cast<int64_t>(ids.size())), nullptr);
}

}  // namespace

TEST_CASE("create_mesh arranges the devices row-major") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 3}}, cuda_devices(6), "training");
  CHECK(mesh.name() == "training");
  CHECK(mesh.rank() == 2);
  CHECK(mesh.size() == 6);
  CHECK(mesh.is_local());
  CHECK(mesh.coordinates(0) == Ids{0, 0});
  CHECK(mesh.coordinates(4) == Ids{1, 1});
  CHECK(mesh.coordinates(5) == Ids{1, 2});
  for (int64_t id = 0; id < 6; ++id) CHECK(mesh.id(mesh.coordinates(id)) == id);
  CHECK(mesh.local_ids() == Ids{0, 1, 2, 3, 4, 5});
  CHECK(mesh.local_devices() == cuda_devices(6));
  CHECK(mesh.local_box() == std::vector<Interval>{{0, 2}, {0, 3}});
  CHECK(mesh.communicator() == nullptr);
}

TEST_CASE("a mesh knows its dimensions by name and by mask") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"height", 3}, {"model", 4}});
  CHECK(mesh.find("height") == 1);
  CHECK(mesh.find("width") == -1);
  CHECK(mesh.index("model") == 2);
  CHECK(mesh.dim_names() == std::vector<std::string>{"batch", "height", "model"});
  CHECK(mesh.size_of(0) == 1);
  CHECK(mesh.size_of(0b101) == 8);
  CHECK(mesh.names(0b101) == "batch,model");
  CHECK(mesh.names(0) == "");
  CHECK_THROWS_MATCHES(mesh.index("hieght"), MeshError,
                       Catch::Message("[mesh] the mesh has no dimension \"hieght\". Received: "
                                      "mesh batch=2, height=3, model=4. To fix: write "
                                      "\"height\"."));
}

TEST_CASE("without devices a mesh takes as many virtual CPUs as it needs") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  CHECK(mesh.local_devices() == virtual_cpus(4));
}

TEST_CASE("one size of a mesh is inferred from the devices") {
  const Mesh mesh = create_mesh({{"batch", -1}, {"model", 2}}, virtual_cpus(8));
  CHECK(to_string(mesh.dims()) == "batch=4,model=2");
  CHECK_THROWS_AS(create_mesh({{"batch", -1}, {"model", -1}}, virtual_cpus(8)), MeshError);
  CHECK_THROWS_WITH(create_mesh({{"batch", -1}, {"model", 3}}, virtual_cpus(8)),
                    Contains("batch=-1,model=3") && Contains("8 devices"));
  CHECK_THROWS_AS(create_mesh({{"batch", -1}}), MeshError);
}

TEST_CASE("create_mesh refuses invalid meshes") {
  CHECK_THROWS_AS(create_mesh({}), MeshError);
  CHECK_THROWS_AS(create_mesh({{"batch", 0}}), MeshError);
  CHECK_THROWS_AS(create_mesh({{"batch", -2}}), MeshError);
  CHECK_THROWS_WITH(create_mesh({{"batch", 2}, {"batch", 2}}), Contains("\"batch\" twice"));
  for (const char* name : {"", "unsharded", "a,b", "a=b", "a|b", "a b", "(a", "a)", "a:b"}) {
    INFO(name);
    CHECK_THROWS_AS(create_mesh({{name, 2}}), MeshError);
  }
  CHECK_THROWS_AS(create_mesh({{"batch", 2}}, virtual_cpus(2), "a|b"), MeshError);
  CHECK_THROWS_WITH(create_mesh({{"batch", 4}, {"model", 2}}, virtual_cpus(6)),
                    Contains("needs 8 devices") && Contains("6 devices"));
}

TEST_CASE("sizes whose product overflows are refused") {
  const int64_t large = int64_t{1} << 40;
  CHECK_THROWS_AS(create_mesh({{"a", large}, {"b", large}}), MeshError);
  CHECK_THROWS_AS(create_mesh({{"a", INT64_MAX}, {"b", -1}}, virtual_cpus(2)), MeshError);
  CHECK_THROWS_AS(create_mesh({{"a", 65536}, {"b", 65536}, {"c", -1}}, virtual_cpus(2)), MeshError);
  CHECK_THROWS_AS(create_mesh({{"a", 256}, {"b", 257}}), MeshError);
  CHECK_THROWS_AS(create_mesh(MeshDims(17, {"a", 1})), MeshError);
}

TEST_CASE("meshes are equal when dimensions, devices, names and local parts are") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const Mesh copy = mesh;
  const Mesh same = create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4));
  CHECK(mesh == copy);
  CHECK(mesh == same);
  CHECK(mesh.hash() == same.hash());
  CHECK_FALSE(mesh == create_mesh({{"batch", 2}, {"feature", 2}}));
  CHECK_FALSE(mesh == create_mesh({{"batch", 4}, {"model", 1}}));
  CHECK_FALSE(mesh == create_mesh({{"model", 2}, {"batch", 2}}));
  CHECK_FALSE(mesh == create_mesh({{"batch", 2}, {"model", 2}}, cuda_devices(4)));
  CHECK_FALSE(mesh == create_mesh({{"batch", 2}, {"model", 2}}, {}, "other"));
  CHECK_FALSE(two_by_four_part({0, 1}) == two_by_four_part({2, 3}));
  CHECK_FALSE(mesh == Mesh());
  CHECK(Mesh() == Mesh());
  CHECK_FALSE(Mesh().defined());
}

TEST_CASE("a process may own any box of the mesh") {
  const Mesh row = two_by_four_part({4, 5, 6, 7});
  CHECK_FALSE(row.is_local());
  CHECK(row.size() == 8);
  CHECK(row.local_box() == std::vector<Interval>{{1, 2}, {0, 4}});
  CHECK(two_by_four_part({1, 2, 5, 6}).local_box() == std::vector<Interval>{{0, 2}, {1, 3}});
  CHECK(two_by_four_part({3}).local_box() == std::vector<Interval>{{0, 1}, {3, 4}});
}

TEST_CASE("a process may own no device of a mesh") {
  const Mesh mesh = create_mesh_part({{"batch", 2}, {"model", 4}}, {}, {}, nullptr, "far");
  CHECK(mesh.size() == 8);
  CHECK_FALSE(mesh.is_local());
  CHECK(mesh.local_box() == std::vector<Interval>{{0, 0}, {0, 0}});
  CHECK(mesh.to_string() == "far|batch=2,model=4|0,1,2,3,4,5,6,7||");
  CHECK(Mesh::from_string(mesh.to_string()) == mesh);
  CHECK(mesh.sub_mesh({"model"}).size() == 4);
  CHECK(mesh.sub_mesh({"model"}).local_ids().empty());
}

TEST_CASE("local devices that fill no box are refused") {
  const std::vector<Ids> bad = {{0, 5}, {0, 2}, {0, 1, 4}, {3, 4},       {-1},
                                {8},    {0, 0}, {1, 0},    {0, 1, 1, 3}, {0, 1, 2, 9}};
  for (const Ids& ids : bad) CHECK_THROWS_AS(two_by_four_part(ids), MeshError);
  CHECK_THROWS_AS(create_mesh_part({{"batch", 2}}, {}, virtual_cpus(1), nullptr), MeshError);
  CHECK_THROWS_AS(create_mesh_part({{"batch", 2}}, {0, 1}, virtual_cpus(1), nullptr), MeshError);
}

TEST_CASE("sub_mesh keeps the named dimensions through the first local device") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"height", 2}, {"model", 2}}, cuda_devices(8));
  const Mesh model = mesh.sub_mesh({"model"});
  CHECK(model.dims() == MeshDims{{"model", 2}});
  CHECK(model.local_devices() == cuda_devices(2));
  const Mesh sub = mesh.sub_mesh({"model", "batch"});
  CHECK(sub.dims() == MeshDims{{"batch", 2}, {"model", 2}});
  CHECK(sub.local_ids() == Ids{0, 1, 2, 3});
  REQUIRE(sub.local_devices().size() == 4);
  CHECK(sub.local_devices()[2].index == 4);
  CHECK(sub.local_devices()[3].index == 5);
  CHECK(mesh.sub_mesh({"batch", "height", "model"}) == mesh);
  CHECK_THROWS_AS(mesh.sub_mesh({"modle"}), MeshError);
  CHECK_THROWS_AS(mesh.sub_mesh({}), MeshError);
}

TEST_CASE("sub_mesh of a partial mesh has its local part") {
  const Mesh row = two_by_four_part({6, 7});
  const Mesh model = row.sub_mesh({"model"});
  CHECK(model.size() == 4);
  CHECK(model.local_ids() == Ids{2, 3});
  CHECK(model.local_box() == std::vector<Interval>{{2, 4}});
  const Mesh batch = row.sub_mesh({"batch"});
  CHECK(batch.local_ids() == Ids{1});
  CHECK(batch.local_devices() == std::vector<Device>{{Device::Type::cpu, 0}});
}

TEST_CASE("a mesh's text round-trips") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}}, cuda_devices(4), "m");
  CHECK(mesh.to_string() == "m|batch=2,model=2|0,1,2,3|0,1,2,3|cuda:0,cuda:1,cuda:2,cuda:3");
  CHECK(Mesh::from_string(mesh.to_string()) == mesh);
  const Mesh part = two_by_four_part({1, 2, 5, 6});
  CHECK(part.to_string() == "|batch=2,model=4|0,1,2,3,4,5,6,7|1,2,5,6|cpu:0,cpu:1,cpu:2,cpu:3");
  CHECK(Mesh::from_string(part.to_string()) == part);
  CHECK(mesh.describe() == "batch=2, model=2");
}

TEST_CASE("any other mesh text is refused") {
  for (const char* text :
       {"", "|", "|||||", "|a=2|0,1|0,1", "|a=2|0,1|0,1|cpu:0", "|a=2|0|0,1|cpu:0,cpu:1",
        "|a=2|x|0,1|cpu:0,cpu:1", "|a=2|0,1|1,0|cpu:0,cpu:1", "|a=02|0,1|0,1|cpu:0,cpu:1",
        "|a=2|0,1|0,1|cpu:0,tpu:1", "|a=2|0,1||cpu:0", "|a=2|0,1|0|", "|a=99999999999|0|0|cpu:0",
        "|a=2|0,1|0,99999999999999999999|cpu:0,cpu:1", "|a=2|0,1|0,1|cpu:0,cpu:1|"}) {
    INFO(text);
    CHECK_THROWS_AS(Mesh::from_string(text), MeshError);
  }
}

TEST_CASE("mesh dimensions are parsed from command-line text") {
  CHECK(parse_mesh_dims("batch=4,model=2") == MeshDims{{"batch", 4}, {"model", 2}});
  CHECK(to_string(parse_mesh_dims("model=2,batch=-1")) == "model=2,batch=-1");
  for (const char* text : {"", "batch", "batch=", "=4", "batch=4,", "batch=x", "batch=4.5",
                           "batch=--4", "batch=+4", "batch=4 ", "batch=1234567890"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_mesh_dims(text), MeshError);
  }
}

}  // namespace mesh_test
