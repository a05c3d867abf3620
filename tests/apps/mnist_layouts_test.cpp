#include <filesystem>
#include <map>

#include <tessera/framework/mesh/layout_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace mnist_layouts_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

using Weights = std::vector<std::pair<std::string, Shape>>;
using Layouts = std::map<std::string, std::string>;

/// Returns paths and shapes of a stack of dense layers on 784 inputs, named as in mnist.
Weights weights_of(const std::vector<int64_t>& hidden) {
  Weights weights;
  int64_t inputs = 784;
  for (size_t i = 0; i <= hidden.size(); ++i) {
    const bool last = i == hidden.size();
    const std::string layer = last ? "logits" : "hidden_" + std::to_string(i + 1);
    const int64_t units = last ? 10 : hidden[i];
    weights.push_back({layer + "/kernel", {inputs, units}});
    weights.push_back({layer + "/bias", {units}});
    inputs = units;
  }
  return weights;
}

const std::vector<Weights> models{weights_of({700, 500}), weights_of({700, 10}), weights_of({128})};

std::filesystem::path layouts_path(const std::string& name) {
  return std::filesystem::path(TESSERA_TEST_DIR).parent_path() / "apps/mnist/layouts" / name;
}

/// Returns the layouts of the weights that are not replicated.
Layouts placed(const LayoutMap& map, const Weights& weights) {
  Layouts layouts;
  std::vector<std::string> paths;
  Placement kernel;
  for (const auto& [path, shape] : weights) {
    const bool is_kernel = shape.size() == 2;
    const Placement placement = map.find(path, shape, is_kernel ? nullptr : &kernel);
    if (is_kernel) kernel = placement;
    if (!placement.layout.is_fully_replicated()) layouts[path] = placement.layout.describe();
    paths.push_back(path);
  }
  map.check_all_used(paths);
  return layouts;
}

LayoutMap map_of(const std::string& name, const std::string& mesh) {
  const LayoutFile file = read_layout_file(layouts_path(name).string());
  return make_layout_map(file, create_mesh(parse_mesh_dims(mesh)));
}

}  // namespace

TEST_CASE("data.json replicates the weights and shards the batch", "[mnist_layouts]") {
  for (const std::string mesh : {"batch=1", "batch=8", "batch=4,model=2"}) {
    const LayoutMap map = map_of("data.json", mesh);
    for (const Weights& weights : models) CHECK(placed(map, weights).empty());
    CHECK(map.data_layout("x", 2).describe() == "(batch, unsharded)");
    CHECK(map.data_layout("y", 1).describe() == "(batch)");
  }
}

TEST_CASE("model.json shards the hidden layers on any mesh with dimension model",
          "[mnist_layouts]") {
  for (const std::string mesh : {"model=8", "batch=4,model=2", "batch=2,model=4"}) {
    const LayoutMap map = map_of("model.json", mesh);
    Layouts expected{{"hidden_1/kernel", "(unsharded, model)"}, {"hidden_1/bias", "(model)"}};
    CHECK(placed(map, weights_of({128})) == expected);
    expected["hidden_2/kernel"] = "(model, unsharded)";
    CHECK(placed(map, weights_of({700, 500})) == expected);
    CHECK(placed(map, weights_of({700, 10})) == expected);
  }
  CHECK(map_of("model.json", "model=8").data_layout("x", 2).describe() == "(unsharded, unsharded)");
  CHECK(map_of("model.json", "batch=4,model=2").data_layout("x", 2).describe() ==
        "(batch, unsharded)");
}

TEST_CASE("feature.json shards the input features too", "[mnist_layouts]") {
  const LayoutFile file = read_layout_file(layouts_path("feature.json").string());
  REQUIRE(file.mesh);
  CHECK(to_string(*file.mesh) == "batch=2,feature=2,model=2");
  const LayoutMap map = make_layout_map(file, create_mesh(*file.mesh));
  CHECK(map.data_layout("x", 2).describe() == "(batch, feature)");
  CHECK(map.data_layout("y", 1).describe() == "(batch)");
  Layouts expected{{"hidden_1/kernel", "(feature, model)"}, {"hidden_1/bias", "(model)"}};
  CHECK(placed(map, weights_of({128})) == expected);
  expected["hidden_2/kernel"] = "(model, unsharded)";
  CHECK(placed(map, weights_of({700, 500})) == expected);
}

TEST_CASE("fsdp.json shards every weight over batch", "[mnist_layouts]") {
  for (const std::string mesh : {"batch=8", "batch=3", "batch=4,model=2"}) {
    const LayoutMap map = map_of("fsdp.json", mesh);
    for (const Weights& weights : models) {
      const Layouts layouts = placed(map, weights);
      CHECK(layouts.size() == weights.size());
      CHECK(layouts.at("hidden_1/kernel") == "(batch, unsharded)");
      CHECK(layouts.at("logits/bias") == "(batch)");
    }
  }
}

}  // namespace mnist_layouts_test
