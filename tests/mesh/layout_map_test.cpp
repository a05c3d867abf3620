#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

#include "tests/support/catch.hpp"

namespace layout_map_test {

using namespace tessera;
using Catch::Contains;

namespace {

Mesh grid() { return create_mesh({{"batch", 4}, {"model", 2}}); }

LayoutSpec layout_for(const LayoutMap& map, const std::string& path, const Shape& shape) {
  return map.find(path, shape).layout.spec();
}

const LayoutSpec rows = {"model", unsharded};
const LayoutSpec columns = {unsharded, "model"};
const LayoutSpec replicated = {unsharded, unsharded};

}  // namespace

TEST_CASE("a rule places the weight of its exact path; all others are replicated") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts["hidden/kernel"] = {unsharded, "model"};
  layouts["hidden/bias"] = {"model"};
  const Placement kernel = layouts.find("hidden/kernel", {784, 700});
  CHECK(kernel.layout == Layout({unsharded, "model"}, mesh));
  CHECK(kernel.shape == Shape{784, 700});
  CHECK(kernel.rule == 0);
  CHECK_FALSE(kernel.use);
  CHECK_FALSE(kernel.slots);
  CHECK(layouts.find("hidden/bias", {700}).layout == Layout({"model"}, mesh));
  const Placement other = layouts.find("output/kernel", {700, 10});
  CHECK(other.layout == Layout::replicated(mesh, 2));
  CHECK(other.rule == -1);
  CHECK(layouts.find("scale", {}).layout == Layout::replicated(mesh, 0));
}

TEST_CASE("an expression must match the entire path") {
  LayoutMap layouts(grid());
  layouts["dense.*kernel"] = columns;
  CHECK(layout_for(layouts, "dense/kernel", {4, 4}) == columns);
  CHECK(layout_for(layouts, "dense_1/kernel", {4, 4}) == columns);
  CHECK(layout_for(layouts, "model/dense/kernel", {4, 4}) == replicated);
  CHECK(layout_for(layouts, "dense/kernel_scale", {4, 4}) == replicated);
}

TEST_CASE("the exact path takes precedence over expressions, in any order") {
  LayoutMap layouts(grid());
  layouts[".*/kernel"] = columns;
  layouts["a/kernel"] = rows;
  CHECK(layout_for(layouts, "a/kernel", {4, 4}) == rows);
  CHECK(layout_for(layouts, "b/kernel", {4, 4}) == columns);
  // As a path `.` is itself, as an expression it is any character.
  layouts["c.d/w"] = rows;
  layouts["c[./]d/w"] = columns;
  CHECK(layout_for(layouts, "c.d/w", {4, 4}) == rows);
  CHECK_THROWS_AS(layouts.find("c/d/w", {4, 4}), LayoutError);
}

TEST_CASE("two expressions that match one weight are an error that names both") {
  LayoutMap layouts(grid());
  layouts["hidden/.*"] = {unsharded, "model"};
  layouts["other/.*"] = {unsharded, "model"};
  layouts[".*/kernel"] = {"model", unsharded};
  CHECK_THROWS_MATCHES(
      layouts.find("hidden/kernel", {4, 4}), LayoutError,
      Catch::Message("[hidden/kernel] at most one layout rule matches a weight. Received: rules "
                     "\"hidden/.*\", \".*/kernel\". To fix: narrow one of them, or add a rule "
                     "with the weight's exact path."));
}

TEST_CASE("on_multiple = first takes the first rule in order") {
  LayoutMap layouts(grid(), {.on_multiple = OnMultiple::first});
  layouts["hidden/.*"] = columns;
  layouts[".*/kernel"] = rows;
  CHECK(layout_for(layouts, "hidden/kernel", {4, 4}) == columns);
  layouts["hidden/.*"] = replicated;
  CHECK(layout_for(layouts, "hidden/kernel", {4, 4}) == replicated);
  layouts["hidden/kernel"] = rows;
  CHECK(layout_for(layouts, "hidden/kernel", {4, 4}) == rows);
}

TEST_CASE("the example of Keras 3's LayoutMap") {
  LayoutMap layouts(grid());
  layouts[".*dense.*kernel"] = {nullptr, "model"};
  layouts[".*dense.*bias"] = {"model"};
  layouts[".*conv2d.*kernel"] = {nullptr, nullptr, nullptr, "model"};
  layouts[".*conv2d.*bias"] = {"model"};
  const LayoutSpec conv = {nullptr, nullptr, nullptr, "model"};
  CHECK(layout_for(layouts, "dense_1.kernel", {4, 4}) == columns);
  CHECK(layout_for(layouts, "dense_1.bias", {4}) == LayoutSpec{"model"});
  CHECK(layout_for(layouts, "dense_2.kernel", {4, 4}) == columns);
  CHECK(layout_for(layouts, "dense_2.bias", {4}) == LayoutSpec{"model"});
  CHECK(layout_for(layouts, "my_model/conv2d_123/kernel", {3, 3, 1, 4}) == conv);
  CHECK(layout_for(layouts, "my_model/conv2d_123/bias", {4}) == LayoutSpec{"model"});
  CHECK(layouts.find("my_model/conv3d_1/kernel", {3, 3, 3, 1, 4}).rule == -1);
  CHECK(layouts.find("my_model/conv3d_1/bias", {4}).rule == -1);
}

TEST_CASE("the example of tf.keras' LayoutMap and of its guide") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh, {.on_multiple = OnMultiple::first});
  layouts[".*dense.*kernel"] = Layout(columns, mesh);
  layouts[".*dense.*bias"] = Layout({"model"}, mesh);
  layouts[".*conv2d.*kernel"] = Layout::inner_sharded(mesh, "model", 4);
  layouts[".*conv2d.*bias"] = Layout::batch_sharded(mesh, "model", 1);
  layouts["feature.*kernel"] = Layout::batch_sharded(mesh, "batch", 2);
  CHECK(layouts.find("dense_1.kernel", {4, 4}).rule == 0);
  CHECK(layouts.find("dense_2.bias", {4}).rule == 1);
  CHECK(layouts.find("my_model/conv2d_123/kernel", {3, 3, 1, 4}).rule == 2);
  CHECK(layouts.find("my_model/conv2d_123/bias", {4}).rule == 3);
  CHECK(layout_for(layouts, "feature/kernel", {16, 16}) == LayoutSpec{"batch", unsharded});
  CHECK(layout_for(layouts, "feature_2/kernel", {16, 24}) == LayoutSpec{"batch", unsharded});
}

TEST_CASE("a rule's layout is on the map's mesh") {
  LayoutMap layouts(grid());
  const Mesh other = create_mesh({{"batch", 2}, {"model", 2}});
  CHECK_THROWS_AS(layouts["a"] = Layout(columns, other), LayoutError);
  CHECK_THROWS_AS(layouts["a"] = Layout(), LayoutError);
  CHECK(layouts.rules().empty());
}

TEST_CASE("operator[] replaces a rule, add refuses to") {
  LayoutMap layouts(grid());
  layouts.add({.match = "a/.*", .layout = columns, .optional = true});
  CHECK_THROWS_WITH(layouts.add({.match = "a/.*", .layout = rows}), Contains("a/.*"));
  CHECK(layouts.rules().size() == 1);
  layouts["a/.*"] = rows;
  CHECK(layouts.rules() == std::vector<LayoutRule>{{.match = "a/.*", .layout = rows}});
}

TEST_CASE("a copy of a layout map is independent") {
  LayoutMap layouts(grid());
  layouts["a/.*"] = columns;
  LayoutMap copy = layouts;
  copy["a/.*"] = rows;
  copy["b/.*"] = rows;
  CHECK(layout_for(layouts, "a/kernel", {4, 4}) == columns);
  CHECK(layout_for(layouts, "b/kernel", {4, 4}) == replicated);
  CHECK(layout_for(copy, "b/kernel", {4, 4}) == rows);
}

TEST_CASE("vectors follow the last axis of their layer's kernel") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts["split/kernel"] = {"batch", "model"};
  layouts["joined/kernel"] = {"model", unsharded};
  const Placement split = layouts.find("split/kernel", {8, 6});
  const Placement joined = layouts.find("joined/kernel", {8, 6});
  CHECK(layouts.find("split/bias", {6}, &split).layout == Layout({"model"}, mesh));
  CHECK(layouts.find("split/bias", {6}, &split).rule == -1);
  CHECK(layouts.find("joined/bias", {6}, &joined).layout == Layout::replicated(mesh, 1));
  CHECK(layouts.find("split/bias", {6}).layout == Layout::replicated(mesh, 1));
  CHECK(layouts.find("split/bias", {8}, &split).layout == Layout::replicated(mesh, 1));
  CHECK(layouts.find("split/other", {6, 6}, &split).layout == Layout::replicated(mesh, 2));
  CHECK(layouts.find("split/scale", {}, &split).layout == Layout::replicated(mesh, 0));
  const Placement scalar = layouts.find("scale", {});
  CHECK(layouts.find("split/bias", {6}, &scalar).layout == Layout::replicated(mesh, 1));
  const Placement gamma = layouts.find("split/gamma", {6}, &split);
  CHECK(layouts.find("split/moving_mean", {6}, &gamma).layout == Layout({"model"}, mesh));
  layouts["split/bias"] = {unsharded};
  CHECK(layouts.find("split/bias", {6}, &split).layout == Layout::replicated(mesh, 1));
}

TEST_CASE("`use` and `slots` come with the rule and with derived vectors") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts.add({.match = ".*/kernel",
               .layout = {unsharded, "model"},
               .use = LayoutSpec{unsharded, unsharded},
               .slots = LayoutSpec{unsharded, AxisSpec{"model", "batch"}}});
  const Placement kernel = layouts.find("a/kernel", {8, 6});
  REQUIRE(kernel.use);
  REQUIRE(kernel.slots);
  CHECK(*kernel.use == Layout::replicated(mesh, 2));
  CHECK(*kernel.slots == Layout({unsharded, AxisSpec{"model", "batch"}}, mesh));
  const Placement bias = layouts.find("a/bias", {6}, &kernel);
  CHECK(bias.layout == Layout({"model"}, mesh));
  REQUIRE(bias.use);
  REQUIRE(bias.slots);
  CHECK(*bias.use == Layout::replicated(mesh, 1));
  CHECK(*bias.slots == Layout({AxisSpec{"model", "batch"}}, mesh));
}

TEST_CASE("fully_shard cuts the axis with the longest shards of weights that no rule gathers") {
  const Mesh mesh = grid();  // batch=4, model=2
  LayoutMap layouts(mesh);
  layouts["mine"] = {unsharded, "model"};
  layouts["cut"] = {"batch", unsharded};
  layouts.add(
      {.match = "used", .layout = {"model", unsharded}, .use = LayoutSpec{nullptr, nullptr}});
  layouts.fully_shard({"batch", false, true});
  const auto placed = [&](const std::string& path, const Shape& shape) {
    return layouts.fully_sharded(layouts.find(path, shape));
  };
  CHECK(placed("a", {8, 9}).layout == Layout({unsharded, "batch"}, mesh));
  CHECK(placed("a", {9, 9}).layout == Layout({"batch", unsharded}, mesh));
  CHECK(placed("a", {9, 9}).use == Layout::replicated(mesh, 2));
  CHECK(placed("a", {3, 3, 5, 7}).layout == Layout({{}, {}, {}, "batch"}, mesh));
  CHECK(placed("a", {4}).layout == Layout({"batch"}, mesh));
  CHECK_FALSE(placed("a", {4}).reshard_after_forward);
  CHECK(placed("a", {4}).reduce_at_end);
  // The rule's own sharding remains where operations use the weight.
  CHECK(placed("mine", {8, 9}).layout == Layout({"batch", "model"}, mesh));
  CHECK(placed("mine", {4, 20}).layout == Layout({unsharded, AxisSpec{"model", "batch"}}, mesh));
  CHECK(placed("mine", {8, 9}).use == Layout({unsharded, "model"}, mesh));
  for (const auto& [path, shape] : std::vector<std::pair<std::string, Shape>>{
           {"cut", {8, 8}}, {"used", {8, 8}}, {"a", {3}}, {"a", {}}, {"mine", {3, 6}}}) {
    CAPTURE(path, shape);
    CHECK(placed(path, shape).layout == layouts.find(path, shape).layout);
    CHECK_FALSE(placed(path, shape).reduce_at_end);
  }
  layouts.fully_shard(AxisSpec{"batch", "model"});
  CHECK(placed("a", {8, 9}).layout == Layout({unsharded, AxisSpec{"batch", "model"}}, mesh));
  CHECK(placed("a", {8, 9}).reshard_after_forward);
  CHECK(placed("mine", {8, 9}).layout == layouts.find("mine", {8, 9}).layout);
  CHECK_THROWS_WITH(layouts.fully_shard("bacth"), Contains("[fully_shard]") && Contains("batch"));
  CHECK_THROWS_WITH(layouts.fully_shard(AxisSpec(nullptr)), Contains("over names"));
  CHECK_THROWS_WITH(layouts.fully_shard(AxisSpec{"batch", "batch"}), Contains("twice"));
}

TEST_CASE("`use` and `slots` must refine the layout") {
  LayoutMap layouts(grid());
  const LayoutSpec vector = {"model"};
  const auto add = [&](std::optional<LayoutSpec> use, std::optional<LayoutSpec> slots) {
    layouts.add({.match = "w", .layout = columns, .use = use, .slots = slots});
  };
  CHECK_THROWS_WITH(add(vector, {}), Contains("[w]") && Contains("use (model)"));
  CHECK_THROWS_WITH(add({}, vector), Contains("slots (model)"));
  CHECK_THROWS_WITH(add({}, rows), Contains("slots (model, unsharded)"));
  CHECK_THROWS_WITH(add({}, LayoutSpec{unsharded, AxisSpec{"batch", "model"}}),
                    Contains("slots (unsharded, (batch,model))"));
  CHECK_THROWS_WITH(add(LayoutSpec{"bacth", unsharded}, {}), Contains("write \"batch\""));
  CHECK_THROWS_AS(add({}, LayoutSpec{"model", "model"}), LayoutError);
  CHECK(layouts.rules().empty());
  add(LayoutSpec{"batch", unsharded}, LayoutSpec{"batch", "model"});
  CHECK(layouts.rules().size() == 1);
}

TEST_CASE("a rule whose rank differs from its weight's is an error") {
  LayoutMap layouts(grid());
  layouts["hidden/.*"] = columns;
  CHECK_THROWS_MATCHES(
      layouts.find("hidden/bias", {700}), LayoutError,
      Catch::Message("[hidden/bias] rule \"hidden/.*\" has a layout of rank 2, the weight has rank "
                     "1. Received: layout (unsharded, model), shape (700,). To fix: give the "
                     "layout one entry per axis of the weight, or narrow the rule."));
  layouts["s"] = LayoutSpec{};
  CHECK_THROWS_AS(layouts.find("s", {1}), LayoutError);
  CHECK(layouts.find("s", {}).rule == 1);
}

TEST_CASE("an unknown mesh dimension is reported with the nearest name") {
  LayoutMap layouts(grid());
  CHECK_THROWS_MATCHES((layouts["hidden/kernel"] = {unsharded, "modle"}), LayoutError,
                       Catch::Message("[hidden/kernel] layout names mesh dimension \"modle\". "
                                      "Received: mesh batch=4, model=2. To fix: write \"model\" "
                                      "in rule \"hidden/kernel\"."));
  CHECK_THROWS_WITH((layouts["a"] = {"model", "model"}), Contains("\"model\" twice"));
  CHECK(layouts.rules().empty());
}

TEST_CASE("the rules of a map are read as those of a dictionary") {
  LayoutMap layouts(grid());
  CHECK(layouts.size() == 0);
  layouts["a/kernel"] = {unsharded, "model"};
  layouts["a/bias"] = {"model"};
  CHECK(layouts.size() == 2);
  std::string names;
  for (const LayoutRule& rule : layouts) names += rule.match + " ";
  CHECK(names == "a/kernel a/bias ");
  CHECK(layouts.contains("a/bias"));
  CHECK_FALSE(layouts.contains("a/.*"));
  CHECK(layouts.at("a/kernel").layout == columns);
  CHECK_THROWS_WITH(layouts.at("a/kernal"), Contains("\"a/kernal\"") && Contains("a/kernel"));
  layouts.erase("a/kernel");
  CHECK(layouts.size() == 1);
  CHECK(layout_for(layouts, "a/kernel", {8, 8}) == replicated);
  CHECK(layouts.find("a/bias", {8}).layout.spec() == LayoutSpec{"model"});
  CHECK_THROWS_WITH(layouts.erase("a/kernel"), Contains("[LayoutMap::erase]"));
}

}  // namespace layout_map_test
