#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

using namespace tessera;
using Catch::Contains;

namespace pipeline_options_test {

Mesh staged() { return create_mesh({{"stage", 4}, {"batch", 2}}, virtual_cpus(8)); }

TEST_CASE("a layout map has the options of a pipeline") {
  LayoutMap layouts(staged());
  CHECK_FALSE(layouts.pipeline());
  CHECK_FALSE(layouts.find_stage("a"));
  layouts.set_pipeline({.stages = "stage", .microbatches = 8, .schedule = "zb_v"});
  REQUIRE(layouts.pipeline());
  CHECK(layouts.pipeline()->schedule == "zb_v");
  CHECK(layouts.describe() == "pipeline: stage, 8 microbatches, schedule zb_v, split auto\n");
  layouts.set_pipeline({.microbatches = 2,
                        .schedule = "interleaved",
                        .chunks = 3,
                        .split = {"rules"},
                        .rules = {{"block_\\d+", 11}}});
  CHECK(layouts.describe() ==
        "pipeline: stage, 2 microbatches, schedule interleaved, 3 chunks, split rules\n"
        "block_\\d+: stage 11\n");
  CHECK(layouts.on_mesh(staged()).pipeline() == layouts.pipeline());
}

TEST_CASE("a batch of few rows has fewer microbatches") {
  LayoutMap layouts(staged());
  CHECK(layouts.microbatches_of(1000) == 1);
  layouts.set_pipeline({.microbatches = 8});
  const std::vector<int64_t> rows = {1, 2, 3, 4, 15, 16, 17, 1000};
  std::vector<int64_t> microbatches;
  for (const int64_t count : rows) microbatches.push_back(layouts.microbatches_of(count));
  CHECK(microbatches == std::vector<int64_t>{1, 1, 1, 2, 7, 8, 8, 8});
  CHECK(layouts.microbatches_of(0) == 1);
}

TEST_CASE("rules find the stage of a path") {
  LayoutMap layouts(staged());
  layouts.set_pipeline(
      {.rules = {{"block_1/.*", 1}, {"block_1/bias", 2}, {".*/scale", 3}, {"head", 3}}});
  CHECK(layouts.find_stage("block_1/kernel") == 1);
  CHECK(layouts.find_stage("block_1/bias") == 2);
  CHECK(layouts.find_stage("head") == 3);
  CHECK_FALSE(layouts.find_stage("head/kernel"));
  CHECK_THROWS_WITH(layouts.find_stage("block_1/scale"),
                    Contains("[block_1/scale]") && Contains("stage 1 by \"block_1/.*\"") &&
                        Contains("3 by \".*/scale\""));
  LayoutMap first(staged(), {.on_multiple = OnMultiple::first});
  first.set_pipeline(*layouts.pipeline());
  CHECK(first.find_stage("block_1/scale") == 1);

  CHECK_NOTHROW(layouts.check_stages_used({"block_1/bias", "block_1/scale", "head"}));
  CHECK_THROWS_WITH(layouts.check_stages_used({"block_1/bias", "block_1/scale", "haed"}),
                    Contains("stage rule \"head\"") && Contains("nearest paths \"haed\""));
}

TEST_CASE("options of a pipeline that cannot be are refused by name") {
  const auto set = [](const PipelineParallelOptions& options) {
    LayoutMap(staged()).set_pipeline(options);
  };
  CHECK_THROWS_AS(set({.stages = "stge"}), LayoutError);
  CHECK_THROWS_WITH(set({.stages = "stge"}), Contains("[pipeline]") && Contains("\"stage\""));
  CHECK_THROWS_AS(set({.microbatches = 0}), ConfigError);
  CHECK_THROWS_WITH(set({.microbatches = 5000}), Contains("from 1 to 4096"));
  CHECK_THROWS_WITH(set({.schedule = "1f1v"}), Contains("write \"1f1b\""));
  CHECK_THROWS_WITH(set({.schedule = "zb_h1", .chunks = 2}), Contains("\"interleaved\""));
  CHECK_THROWS_WITH(set({.chunks = -1}), Contains("-1 chunks"));
  CHECK_THROWS_WITH(set({.schedule = "a.csv", .chunks = -1}), Contains("-1 chunks"));
  CHECK_NOTHROW(set({.schedule = "a.csv", .split = {"a"}, .rules = {{"a", 99}}}));
  CHECK_THROWS_WITH(set({.schedule = "a.csv", .rules = {{"a", -1}}}),
                    Contains("[pipeline: a]") && Contains("not negative"));
  CHECK_THROWS_WITH(set({.split = {"a"}}), Contains("3 for 4 stages"));
  CHECK_THROWS_WITH(set({.split = {}}), Contains("Received: none"));
  CHECK_THROWS_WITH(set({.split = {"a", "b", "a"}}), Contains("each layer once"));
  CHECK_NOTHROW(set({.split = {"a", "b", "c"}}));
  CHECK_THROWS_WITH(set({.rules = {{"a", 4}}}), Contains("stages 0 to 3") && Contains("stage 4"));
  CHECK_THROWS_WITH(set({.rules = {{"(?=a)", 0}}}), Contains("look-ahead"));
  CHECK_THROWS_AS(LayoutMap().set_pipeline({}), StateError);
}

TEST_CASE("nothing is sharded over the mesh dimension of the stages") {
  const auto staged_map = [] {
    LayoutMap layouts(staged());
    layouts.set_pipeline({.microbatches = 2});
    return layouts;
  };
  const auto refused = Contains("mesh dimension of a pipeline's stages. Received: \"stage\"");
  LayoutMap layouts = staged_map();
  CHECK_THROWS_WITH(layouts.add({.match = "a", .layout = {"stage"}}), Contains("[a]") && refused);
  CHECK_THROWS_WITH(layouts.add({.match = "a", .layout = {unsharded}, .use = LayoutSpec{"stage"}}),
                    Contains("use shards no axis") && refused);
  CHECK_THROWS_WITH(layouts.set_data("x", {"stage"}), Contains("[data.x]") && refused);
  CHECK_THROWS_WITH(layouts.fully_shard("stage"), Contains("[fully_shard]") && refused);
  layouts.set_data("x", {"batch"});
  layouts.fully_shard("batch");

  LayoutMap before(staged());
  before["a"] = {"stage"};
  CHECK_THROWS_WITH(before.set_pipeline({.microbatches = 2}), Contains("[a]") && refused);
  CHECK_FALSE(before.pipeline());
  before.erase("a");
  before.set_data("x", {"stage"});
  CHECK_THROWS_WITH(before.set_pipeline({.microbatches = 2}), Contains("[data.x]") && refused);
  before.set_data("x", {"batch"});
  before.fully_shard("stage");
  CHECK_THROWS_WITH(before.set_pipeline({.microbatches = 2}), Contains("[fully_shard]") && refused);
}

}  // namespace pipeline_options_test
