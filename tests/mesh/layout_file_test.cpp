#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/layout_file.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace layout_file_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace {

LayoutFile parse(const std::string& text) {
  return layout_file_from_json(parse_json(text, "l.json"), "l.json");
}

Mesh grid() { return create_mesh({{"batch", 4}, {"model", 2}}); }

}  // namespace

TEST_CASE("no layouts file makes a third-party library throw") {
  const std::vector<std::string> nasty = {"null",
                                          "true",
                                          "0",
                                          "-1",
                                          "1.5",
                                          "9223372036854775807",
                                          "18446744073709551615",
                                          "\"\"",
                                          "\"batch\"",
                                          "\"(\"",
                                          "[]",
                                          "{}",
                                          "[[]]",
                                          "[null]",
                                          "[\"batch\", \"batch\"]",
                                          "[[\"batch\", \"batch\"]]",
                                          "[1]",
                                          "{\"x\": 1}",
                                          "[{\"match\": 1, \"layout\": 2}]",
                                          "[{\"match\": \"(\", \"layout\": []}]"};
  const std::vector<std::string> templates = {
      "$",
      "[$]",
      "{\"mesh\": $}",
      "{\"mesh\": {\"batch\": $}}",
      "{\"data\": $}",
      "{\"data\": {\"x\": $}}",
      "{\"layouts\": $}",
      "{\"layouts\": [$]}",
      "{\"on_multiple\": $}",
      "{\"layouts\": [{\"match\": $, \"layout\": []}]}",
      "{\"layouts\": [{\"match\": \"a\", \"layout\": $}]}",
      "{\"layouts\": [{\"match\": \"a\", \"layout\": [$]}]}",
      "{\"layouts\": [{\"match\": \"a\", \"layout\": [[$]]}]}",
      "{\"layouts\": [{\"match\": \"a\", \"layout\": [], \"use\": $}]}",
      "{\"layouts\": [{\"match\": \"a\", \"layout\": [], \"slots\": $}]}",
      "{\"layouts\": [{\"match\": \"a\", \"layout\": [], \"optional\": $}]}",
      "{\"other\": $}"};
  int refused = 0;
  for (const std::string& skeleton : templates) {
    for (const std::string& value : nasty) {
      std::string text = skeleton;
      text.replace(text.find('$'), 1, value);
      CAPTURE(text);
      try {
        make_layout_map(parse(text), grid());
      } catch (const Error& error) {
        ++refused;
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
      }
    }
  }
  CHECK(refused > 250);
}

TEST_CASE("a layouts file is read from disk") {
  const test::TempFolder folder;
  test::write_file(folder / "layouts.json", R"({
    "mesh": {"model": 2, "batch": 4},
    "data": {"x": ["batch", null], "y": ["batch"]},
    "layouts": [{"match": "hidden_1/kernel", "layout": [null, "model"]},
                {"match": ".*", "layout": ["unsharded", ["batch", "model"]],
                 "use": [null, "model"], "slots": null, "optional": true}]})");
  const LayoutFile file = read_layout_file((folder / "layouts.json").string());
  REQUIRE(file.mesh);
  CHECK(to_string(*file.mesh) == "model=2,batch=4");
  CHECK(file.data.at("x") == LayoutSpec{"batch", unsharded});
  CHECK(file.data.at("y") == LayoutSpec{"batch"});
  REQUIRE(file.rules.size() == 2);
  CHECK(file.rules[0] == LayoutRule{.match = "hidden_1/kernel", .layout = {unsharded, "model"}});
  CHECK(file.rules[1].layout == LayoutSpec{unsharded, AxisSpec{"batch", "model"}});
  CHECK(file.rules[1].use == LayoutSpec{unsharded, "model"});
  CHECK_FALSE(file.rules[1].slots);
  CHECK(file.rules[1].optional);
  const LayoutMap map = make_layout_map(file, grid());
  CHECK(map.find("hidden_1/kernel", {4, 4}).rule == 0);
  CHECK(map.data_layout("x", 2) == Layout({"batch", unsharded}, grid()));
}

TEST_CASE("every field of a layouts file may be absent or null") {
  CHECK(parse("{}") == LayoutFile{});
  CHECK(parse(R"({"mesh": null, "data": null, "layouts": null})") == LayoutFile{});
  const LayoutMap map = make_layout_map(parse("{}"), grid());
  CHECK(map.rules().empty());
  CHECK(map.data_layout("x", 1) == Layout({"batch"}, grid()));
}

TEST_CASE("a layout map round-trips through JSON") {
  LayoutMap map(grid(), {.on_multiple = OnMultiple::first});
  map["hidden/kernel"] = {unsharded, "model"};
  map.add({.match = "s", .layout = {}, .optional = true});
  map.add({.match = "\xF0\x9F\x8D\x8E/.*",
           .layout = {AxisSpec{"model"}, nullptr},
           .use = LayoutSpec{nullptr, nullptr},
           .slots = LayoutSpec{AxisSpec{"model", "batch"}, nullptr},
           .reshard_after_forward = true,
           .reduce_at_end = true});
  map.fully_shard({AxisSpec{"batch", "model"}, false, true});
  map.set_memory({.slots = "disk:/tmp"});
  map.set_world_size_invariant(true);
  map.set_data("x", {"batch", unsharded});
  map.set_data("sample_weight", {unsharded});
  const std::string text = to_json_text(to_json(map));
  const LayoutMap back = layout_map_from_json(parse_json(text, "map"), grid());
  CHECK(back.rules() == map.rules());
  CHECK(back.data() == map.data());
  CHECK(back.fully_shard() == map.fully_shard());
  CHECK(back.memory() == map.memory());
  CHECK(back.options().on_multiple == OnMultiple::first);
  CHECK(to_json(back) == to_json(map));
  CHECK(to_string(*parse(text).mesh) == "batch=4,model=2");
  CHECK(to_json(LayoutMap(grid()))["on_multiple"] == "error");
}

Mesh staged() { return create_mesh({{"stage", 2}, {"batch", 2}}, virtual_cpus(4)); }

TEST_CASE("a layouts file says how a model is trained in stages") {
  const char* const text = R"({
    "pipeline": {"stages": "stage", "microbatches": 8, "schedule": "interleaved", "chunks": 3,
                 "split": ["block_1", "block_2", "block_3", "block_4", "block_5"]},
    "layouts": [{"match": "hidden/kernel", "layout": [null, "batch"], "stage": 1},
                {"match": "head/.*", "stage": 5}]})";
  const LayoutMap map = make_layout_map(parse(text), staged());
  CHECK(map.rules().size() == 1);
  REQUIRE(map.pipeline());
  CHECK(map.pipeline() ==
        PipelineParallelOptions{.stages = "stage",
                                .microbatches = 8,
                                .schedule = "interleaved",
                                .chunks = 3,
                                .split = {"block_1", "block_2", "block_3", "block_4", "block_5"},
                                .rules = {{"hidden/kernel", 1}, {"head/.*", 5}}});
  CHECK(map.find_stage("hidden/kernel") == 1);
  CHECK(map.find_stage("head/bias") == 5);
  const LayoutMap back = layout_map_from_json(to_json(map), staged());
  CHECK(back.pipeline() == map.pipeline());
  CHECK(back.rules() == map.rules());
  CHECK(to_json(back) == to_json(map));

  const PipelineParallelOptions usual = *parse(R"({"pipeline": {"microbatches": 4}})").pipeline;
  CHECK(usual == PipelineParallelOptions{.stages = "stage",
                                         .microbatches = 4,
                                         .schedule = "1f1b",
                                         .chunks = 0,
                                         .split = {"auto"},
                                         .rules = {}});
  const char* const by_rules = R"({"pipeline": {"microbatches": 4, "split": "rules"}})";
  CHECK(to_json(make_layout_map(parse(by_rules), staged()))["pipeline"]["split"] == "rules");
  CHECK_FALSE(parse("{}").pipeline);
}

TEST_CASE("errors in a layouts file name the path") {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "[l.json]"},
      {"{\"data\": [\n  ,]}", "[l.json:2:3]"},
      {"{", "[l.json:1:1]"},
      {R"({"layout": []})", "\"layouts\""},
      {R"({"mesh": ["batch"]})", "[l.json: mesh]"},
      {R"({"mesh": {"batch": 1.5}})", "[l.json: mesh.batch]"},
      {R"({"mesh": {"batch": "4"}})", "[l.json: mesh.batch]"},
      {R"({"data": ["batch"]})", "[l.json: data]"},
      {R"({"data": {"x": "batch"}})", "[l.json: data.x]"},
      {R"({"data": {"x": [true]}})", "[l.json: data.x[0]]"},
      {R"({"layouts": {}})", "[l.json: layouts]"},
      {R"({"layouts": [3]})", "[l.json: layouts[0]]"},
      {R"({"layouts": [{"match": "a"}]})", "\"layout\""},
      {R"({"layouts": [{"layout": []}]})", "\"match\""},
      {R"({"layouts": [{"match": 1, "layout": []}]})", "[l.json: layouts[0].match]"},
      {R"({"layouts": [{"match": "a", "layout": null}]})", "[l.json: layouts[0].layout]"},
      {R"({"layouts": [{"match": "a", "layout": [null, 2]}]})", "layouts[0].layout[1]]"},
      {R"({"layouts": [{"match": "a", "layout": [["b", null]]}]})", "layout[0][1]]"},
      {R"({"layouts": [{"match": "a", "layout": [["unsharded"]]}]})", "layout[0][0]]"},
      {R"({"layouts": [{"match": "a", "layout": [], "use": "x"}]})", "layouts[0].use]"},
      {R"({"layouts": [{"match": "a", "layout": [], "slots": {}}]})", "layouts[0].slots]"},
      {R"({"layouts": [{"match": "a", "layout": [], "reshard": true}]})", "layouts[0].reshard]"},
      {R"({"layouts": [{"match": "a", "layout": [], "reshard": "later"}]})", "after_forward"},
      {R"({"layouts": [{"match": "a", "layout": [], "optional": 1}]})", "layouts[0].optional]"},
      {R"({"layouts": [{"match": "a", "layout": [], "optinal": true}]})", "\"optional\""},
      {R"({"layouts": [{"match": "a", "layout": [], "reduce": true}]})", "layouts[0].reduce]"},
      {R"({"memory": {"slots": "tape"}})", "\"disk:FOLDER\""},
      {R"({"memory": {"weights": "host"}})", "\"weights\""},
      {R"({"world_size_invariant": 1})", "[l.json: world_size_invariant]"},
      {R"({"fully_shard": true})", "[l.json: fully_shard]"},
      {R"({"fully_shard": {"reshard": "never"}})", "\"over\""},
      {R"({"fully_shard": {"over": "batch", "reshard": 1}})", "[l.json: fully_shard.reshard]"},
      {R"({"fully_shard": {"over": "batch", "reduce": "last"}})", "\"end\""},
      {R"({"fully_shard": {"over": "batch", "stage": 3}})", "\"stage\""},
      {R"({"pipeline": 3})", "[l.json: pipeline]"},
      {R"({"pipeline": {}})", "\"microbatches\""},
      {R"({"pipeline": {"microbatches": "8"}})", "[l.json: pipeline.microbatches]"},
      {R"({"pipeline": {"microbatches": 8, "split": 3}})", "\"auto\", \"rules\" or a list"},
      {R"({"pipeline": {"microbatches": 8, "stage": "s"}})", "\"stages\""},
      {R"({"layouts": [{"match": "a", "stage": 1}]})", "[l.json: layouts[0].stage]"},
      {R"({"pipeline": {"microbatches": 8}, "layouts": [{"match": "a", "stage": "1"}]})",
       "[l.json: layouts[0].stage]"},
      {R"({"pipeline": {"microbatches": 8}, "layouts": [{"match": "a", "stage": null}]})",
       "\"layout\""},
      {R"({"pipeline": {"microbatches": 8}, "layouts": [{"match": "a", "stage": 1, "use": []}]})",
       "\"layout\""},
      {R"({"pipeline": {"microbatches": 8}, "layouts": [{"stage": 1}]})", "\"match\""},
      {R"({"on_multiple": "last"})", "[l.json: on_multiple]"},
      {R"({"mesh": {"batch": 4, "batch": 2}})", "batch"}};
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK_THROWS_AS(parse(text), ConfigError);
    CHECK_THROWS_WITH(parse(text), Contains(part));
  }
  CHECK_THROWS_AS(read_layout_file("/nonexistent/layouts.json"), FileError);
}

TEST_CASE("rules of a file are checked against the mesh") {
  const auto make = [](const char* text) { return make_layout_map(parse(text), grid()); };
  CHECK_THROWS_WITH(make(R"({"layouts": [{"match": "a", "layout": ["modle"]}]})"),
                    Contains("[a]") && Contains("write \"model\""));
  CHECK_THROWS_WITH(make(R"({"data": {"x": ["bacth"]}})"), Contains("write \"batch\""));
  CHECK_THROWS_AS(make(R"({"layouts": [{"match": "a", "layout": []},
                                       {"match": "a", "layout": []}]})"),
                  LayoutError);
  CHECK_THROWS_AS(make(R"j({"layouts": [{"match": "(?=a)", "layout": []}]})j"), LayoutError);
}

}  // namespace layout_file_test
