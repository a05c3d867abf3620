#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/cpu_time.hpp"

namespace layout_map_use_test {

using namespace tessera;
using Catch::Contains;

namespace {

Mesh grid() { return create_mesh({{"batch", 4}, {"model", 2}}); }

}  // namespace

TEST_CASE("a rule that matches no weight is an error with the nearest paths") {
  LayoutMap layouts(grid());
  layouts["hidden_1/kernel"] = {unsharded, "model"};
  const std::vector<std::string> good = {"hidden_1/kernel", "hidden_1/bias"};
  CHECK_NOTHROW(layouts.check_all_used(good));
  CHECK_THROWS_MATCHES(
      layouts.check_all_used({"hidden_2/kernel", "hidden/kernel", "input/gamma"}), LayoutError,
      Catch::Message("[hidden_1/kernel] a layout rule matches at least one weight or value of "
                     "the model. Received: nearest paths \"hidden_2/kernel\", "
                     "\"hidden/kernel\". To fix: correct the rule, remove it or make it "
                     "optional."));
  CHECK_THROWS_WITH(layouts.check_all_used({"a", "b"}), Contains("paths \"a\", \"b\""));
  CHECK_THROWS_WITH(layouts.check_all_used({}), Contains("without weights"));
}

TEST_CASE("a rule that only matches part of a path counts as unused") {
  LayoutMap layouts(grid());
  layouts["hidden"] = {unsharded, "model"};
  CHECK_THROWS_AS(layouts.check_all_used({"hidden/kernel"}), LayoutError);
}

TEST_CASE("an optional rule may match nothing") {
  LayoutMap layouts(grid());
  layouts.add({.match = "a/.*", .layout = {"model"}, .optional = true});
  CHECK_NOTHROW(layouts.check_all_used({"b/bias"}));
  layouts.add({.match = "c/.*", .layout = {"model"}});
  CHECK_THROWS_WITH(layouts.check_all_used({"b/bias"}), Contains("[c/.*]"));
}

TEST_CASE("a rule overridden by an exact path counts as used") {
  LayoutMap layouts(grid());
  layouts[".*/bias"] = {"model"};
  layouts["a/bias"] = {unsharded};
  CHECK_NOTHROW(layouts.check_all_used({"a/bias"}));
}

TEST_CASE("a rule that matches no weight places values; one that does, weights only") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts["a/.*"] = {unsharded, "model"};
  layouts[".*/output"] = {"batch", unsharded};
  layouts["c/input_1"] = {"batch"};
  layouts.add(
      {.match = "d/output", .layout = {"batch", unsharded}, .use = LayoutSpec{nullptr, nullptr}});
  const LayoutMap values = layouts.value_rules({"a/kernel"});
  CHECK(values.rules().size() == 3);
  CHECK(values.find_value("b/output", 2)->layout == Layout({"batch", unsharded}, mesh));
  CHECK(values.find_value("a/output", 2)->layout == Layout({"batch", unsharded}, mesh));
  CHECK(values.find_value("c/input_1", 1)->layout == Layout({"batch"}, mesh));
  CHECK_FALSE(values.find_value("c/input", 1));
  CHECK_THROWS_MATCHES(
      values.find_value("b/output", 3), LayoutError,
      Catch::Message("[b/output] rule \".*/output\" has a layout of rank 2, the value has rank 3. "
                     "Received: layout (batch, unsharded). To fix: give the layout one entry per "
                     "axis of the value, or narrow the rule."));
  CHECK_THROWS_MATCHES(values.find_value("d/output", 2), LayoutError,
                       Catch::Message("[d/output] rule \"d/output\" places a value and has only a "
                                      "layout. Received: use. To fix: remove it: it is for "
                                      "weights."));
  layouts["b/.*put"] = {"batch", unsharded};
  CHECK_THROWS_WITH(layouts.value_rules({}).find_value("b/output", 2),
                    Contains("at most one layout rule matches a value"));
}

TEST_CASE("a rule may release what it gathers: a weight's use or a value") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts.add({.match = "a/kernel",
               .layout = {"model", unsharded},
               .use = LayoutSpec{nullptr, nullptr},
               .reshard_after_forward = true});
  layouts.add(
      {.match = "a/input", .layout = {unsharded, unsharded}, .reshard_after_forward = true});
  layouts.add({.match = "b/kernel", .layout = {"model", unsharded}, .reshard_after_forward = true});
  const Placement kernel = layouts.find("a/kernel", {4, 4});
  CHECK(kernel.reshard_after_forward);
  CHECK(layouts.find("a/bias", {4}, &kernel).reshard_after_forward);
  CHECK_FALSE(layouts.find("c/kernel", {4, 4}).reshard_after_forward);
  CHECK(layouts.value_rules({"a/kernel"}).find_value("a/input", 2)->reshard_after_forward);
  CHECK_THAT(layouts.describe(),
             Contains("a/input: (unsharded, unsharded), reshard after_forward"));
  CHECK_THROWS_MATCHES(
      layouts.find("b/kernel", {4, 4}), LayoutError,
      Catch::Message("[b/kernel] rule \"b/kernel\" has reshard, which needs use. Received: no use. "
                     "To fix: add use, the layout to gather the weight to, or remove reshard."));
}

TEST_CASE("data is placed by the names of a model's inputs and outputs") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts.set_data("x", {"batch", unsharded});
  layouts.set_data("mask", {unsharded, "model"});
  layouts.set_data("price", {"batch"});
  layouts.set_data_names({"tokens", "mask"}, {"price"});
  CHECK(layouts.data_layout("x", 2) == Layout({"batch", unsharded}, mesh));
  CHECK(layouts.data_layout("x", 2, 1) == Layout({unsharded, "model"}, mesh));
  CHECK(layouts.data_layout("y", 1) == Layout({"batch"}, mesh));
  CHECK_THROWS_WITH(layouts.data_layout("x", 3, 1), Contains("[data.mask]"));
  CHECK_THROWS_MATCHES(
      layouts.set_data_names({"tokens"}, {"price"}), LayoutError,
      Catch::Message("[data.mask] data layouts are for x, y, sample_weight, or one input or output "
                     "by its name. Received: \"mask\". To fix: use one of \"x\", \"y\", "
                     "\"sample_weight\", \"tokens\", \"price\"."));
  CHECK_THROWS_WITH(layouts.set_data_names({"mask"}, {"price", "mask"}), Contains("for both"));
}

TEST_CASE("data is sharded over the dimension batch by default") {
  const Mesh mesh = grid();
  const LayoutMap layouts(mesh);
  CHECK(layouts.data_layout("x", 3) == Layout({"batch", unsharded, unsharded}, mesh));
  CHECK(layouts.data_layout("y", 1) == Layout({"batch"}, mesh));
  CHECK(layouts.data_layout("y", 0) == Layout::replicated(mesh, 0));
  const Mesh model = create_mesh({{"model", 8}});
  CHECK(LayoutMap(model).data_layout("x", 2) == Layout::replicated(model, 2));
}

TEST_CASE("labels and sample weights follow axis 0 of x") {
  const Mesh mesh = grid();
  LayoutMap layouts(mesh);
  layouts.set_data("x", {AxisSpec{"batch", "model"}, unsharded});
  CHECK(layouts.data_layout("x", 2) == Layout({AxisSpec{"batch", "model"}, unsharded}, mesh));
  CHECK(layouts.data_layout("y", 1) == Layout({AxisSpec{"batch", "model"}}, mesh));
  CHECK(layouts.data_layout("sample_weight", 2) ==
        Layout({AxisSpec{"batch", "model"}, unsharded}, mesh));
  layouts.set_data("x", {unsharded, "model"});
  CHECK(layouts.data_layout("y", 2) == Layout::replicated(mesh, 2));
  layouts.set_data("y", {"model"});
  CHECK(layouts.data_layout("y", 1) == Layout({"model"}, mesh));
  CHECK(layouts.data_layout("sample_weight", 1) == Layout::replicated(mesh, 1));
}

TEST_CASE("a data layout whose rank differs from the batch's is refused") {
  LayoutMap layouts(grid());
  layouts.set_data("x", {"batch", unsharded});
  CHECK_THROWS_WITH(layouts.data_layout("x", 3), Contains("[data.x]") && Contains("rank 3"));
  CHECK_THROWS_AS(layouts.data_layout("x", 1), LayoutError);
  layouts.set_data("y", {"batch"});
  CHECK_THROWS_AS(layouts.data_layout("y", 0), LayoutError);
}

TEST_CASE("data layouts are checked when set") {
  LayoutMap layouts(grid());
  CHECK_THROWS_WITH(layouts.set_data("x", {"bacth"}), Contains("write \"batch\""));
  CHECK_THROWS_AS(layouts.set_data("x", {"batch", "batch"}), LayoutError);
  CHECK(layouts.data().empty());
}

TEST_CASE("describe lists rules and data") {
  LayoutMap layouts(grid());
  CHECK(layouts.describe() == "");
  layouts["a/kernel"] = {unsharded, "model"};
  layouts.add({.match = ".*",
               .layout = {unsharded},
               .use = LayoutSpec{unsharded},
               .slots = LayoutSpec{"batch"},
               .optional = true});
  layouts.set_data("x", {"batch", unsharded});
  CHECK(layouts.describe() ==
        "a/kernel: (unsharded, model)\n"
        ".*: (unsharded), use (unsharded), slots (batch), optional\n"
        "data x: (batch, unsharded)\n");
}

TEST_CASE("a map without a mesh throws") {
  LayoutMap layouts;
  CHECK_FALSE(layouts.defined());
  CHECK_THROWS_AS(LayoutMap(Mesh()), StateError);
  CHECK_THROWS_AS(layouts["a"] = LayoutSpec{}, StateError);
  CHECK_THROWS_AS(layouts.find("a", {}), StateError);
  CHECK_THROWS_AS(layouts.set_data("x", {}), StateError);
  CHECK_THROWS_AS(layouts.data_layout("x", 1), StateError);
  CHECK_NOTHROW(layouts.check_all_used({"a"}));
}

TEST_CASE("constructs that RE2 lacks are named") {
  LayoutMap layouts(grid());
  const std::pair<const char*, const char*> cases[] = {{"(?=hidden).*", "look-ahead"},
                                                       {"(?!hidden).*", "look-ahead"},
                                                       {".*(?<=nel)", "look-behind"},
                                                       {".*(?<!nel)", "look-behind"},
                                                       {"(a)/\\1", "back-reference"},
                                                       {"(?P<n>a)/(?P=n)", "back-reference"},
                                                       {"(?<name>a)", "named group"},
                                                       {"(?>a)", "atomic group"},
                                                       {"(a", "missing )"},
                                                       {"[a", "missing ]"},
                                                       {"*", "repetition"},
                                                       {"a{1001}", "{1001}"},
                                                       {"a\\Z", "\\Z"},
                                                       {"a\xff", "UTF-8"}};
  for (const auto& [match, name] : cases) {
    INFO(match);
    CHECK_THROWS_AS(layouts[match] = LayoutSpec{"model"}, LayoutError);
    CHECK_THROWS_WITH(layouts[match] = LayoutSpec{"model"}, Contains(name));
  }
  CHECK(layouts.rules().empty());
  CHECK_NOTHROW(layouts["(?P<name>a)(?i:B)"] = LayoutSpec{"model"});
}

TEST_CASE("malicious expressions take no time") {
  LayoutMap layouts(grid());
  layouts["(a+)+$"] = {"model"};
  layouts["(a|a)*b"] = {"model"};
  const std::string path = std::string(100000, 'a') + "!";
  CHECK(test::cpu_seconds([&] { CHECK(layouts.find(path, {4}).rule == -1); }) < 0.01);
  CHECK_THROWS_WITH(layouts[std::string(20000, 'a')] = LayoutSpec{}, Contains("16384 bytes"));
  const std::string large(10'000'000, 'a');
  CHECK(test::cpu_seconds([&] { CHECK_THROWS_AS(layouts[large] = LayoutSpec{}, LayoutError); }) <
        0.5);
  CHECK_THROWS_AS(layouts["(((a{99}){99}){99}){99}"] = LayoutSpec{}, LayoutError);
  try {
    layouts[large] = LayoutSpec{};
  } catch (const LayoutError& error) {
    CHECK(std::string(error.what()).size() < 400);
  }
}

TEST_CASE("weights of any name are matched by their name") {
  const std::string nul("a\0b/kernel", 10);
  const std::string lengthy(4096, 'n');
  for (const std::string& path :
       {std::string("../x"), std::string("/"), std::string("é/kernel"),
        std::string("\xF0\x9F\x8D\x8E/kernel"), std::string("line\nbreak"), nul, lengthy}) {
    LayoutMap layouts(grid());
    layouts[path] = {"model"};
    CHECK(layouts.find(path, {4}).rule == 0);
    CHECK(layouts.find(path + "x", {4}).rule == -1);
    CHECK_NOTHROW(layouts.check_all_used({path}));
    CHECK_THROWS_AS(layouts.check_all_used({path + "x"}), LayoutError);
  }
  LayoutMap layouts(grid());
  layouts["./kernel"] = {"model"};
  CHECK(layouts.find("\xF0\x9F\x8D\x8E/kernel", {4}).rule == 0);
  CHECK(layouts.find("\xFF\xFE/kernel", {4}).rule == -1);
}

TEST_CASE("errors stay on one line whatever the names contain") {
  LayoutMap layouts(grid());
  layouts["a\nb"] = {"model"};
  try {
    layouts.check_all_used({"c\nd"});
    FAIL("no error");
  } catch (const LayoutError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

}  // namespace layout_map_use_test
