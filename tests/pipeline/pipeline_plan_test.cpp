#include <cstdio>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/pipeline/pipeline_plan.hpp>

#include "tests/support/files.hpp"

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace pipeline_plan_test {

/// A GPT of eight blocks, whose logits cost as much as two blocks.
std::vector<LayerCost> gpt_layers() {
  std::vector<LayerCost> layers = {{"embedding", {1, 0, 1}}};
  for (int block = 0; block < 8; ++block) layers.push_back({str("block_", block), {4, 4, 4}});
  layers.push_back({"logits", {8, 8, 8}});
  return layers;
}

std::string picture(const std::string& name, int64_t devices, int64_t microbatches) {
  const PipelineSchedule schedule =
      make_schedule({.name = name, .devices = devices, .microbatches = microbatches});
  return draw_schedule(simulate_schedule(schedule, equal_costs(schedule)), 200).value();
}

std::string docs() {
  return test::read_file(std::string(TESSERA_TEST_DIR) + "/../docs/pipelines.md");
}

TEST_CASE("a plan shows stages, idle shares and microbatches in flight") {
  const PipelinePlan plan = plan_pipeline({.microbatches = 8, .schedule = "1f1b"}, 4, gpt_layers());
  CHECK(
      to_string(plan) ==
      R"(Pipeline of 4 stages on mesh dimension stage, 8 microbatches, schedule 1f1b: devices are idle 34.8 % of a step
┏━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━┓
┃ Stage ┃ Device ┃ Layers                   ┃   Cost ┃ In flight ┃
┡━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━┩
│     0 │      0 │ embedding to block_1 (3) │ 21.3 % │         4 │
├───────┼────────┼──────────────────────────┼────────┼───────────┤
│     1 │      1 │ block_2 to block_3 (2)   │ 19.7 % │         3 │
├───────┼────────┼──────────────────────────┼────────┼───────────┤
│     2 │      2 │ block_4 to block_6 (3)   │ 29.5 % │         2 │
├───────┼────────┼──────────────────────────┼────────┼───────────┤
│     3 │      3 │ block_7 to logits (2)    │ 29.5 % │         1 │
└───────┴────────┴──────────────────────────┴────────┴───────────┘
┏━━━━━━━━┳━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━┓
┃ Device ┃ Stages ┃   Idle ┃ In flight ┃
┡━━━━━━━━╇━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━┩
│      0 │ 0      │ 44.4 % │         4 │
├────────┼────────┼────────┼───────────┤
│      1 │ 1      │ 48.7 % │         3 │
├────────┼────────┼────────┼───────────┤
│      2 │ 2      │ 23.0 % │         2 │
├────────┼────────┼────────┼───────────┤
│      3 │ 3      │ 23.0 % │         1 │
└────────┴────────┴────────┴───────────┘
)");
  CHECK_THAT(docs(), Contains(to_string(plan)));
}

TEST_CASE("a plan of several stages on each device") {
  const PipelinePlan plan = plan_pipeline({.microbatches = 8, .schedule = "zb_v"}, 2, gpt_layers());
  CHECK(
      to_string(plan) ==
      R"(Pipeline of 4 stages on mesh dimension stage, 8 microbatches, schedule zb_v: devices are idle 3.0 % of a step
┏━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━┓
┃ Stage ┃ Device ┃ Layers                   ┃   Cost ┃ In flight ┃
┡━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━┩
│     0 │      0 │ embedding to block_1 (3) │ 21.3 % │         4 │
├───────┼────────┼──────────────────────────┼────────┼───────────┤
│     1 │      1 │ block_2 to block_3 (2)   │ 19.7 % │         3 │
├───────┼────────┼──────────────────────────┼────────┼───────────┤
│     2 │      1 │ block_4 to block_6 (3)   │ 29.5 % │         2 │
├───────┼────────┼──────────────────────────┼────────┼───────────┤
│     3 │      0 │ block_7 to logits (2)    │ 29.5 % │         1 │
└───────┴────────┴──────────────────────────┴────────┴───────────┘
┏━━━━━━━━┳━━━━━━━━┳━━━━━━━┳━━━━━━━━━━━┓
┃ Device ┃ Stages ┃  Idle ┃ In flight ┃
┡━━━━━━━━╇━━━━━━━━╇━━━━━━━╇━━━━━━━━━━━┩
│      0 │ 0, 3   │ 1.4 % │         2 │
├────────┼────────┼───────┼───────────┤
│      1 │ 1, 2   │ 4.6 % │         2 │
└────────┴────────┴───────┴───────────┘
)");
}

TEST_CASE("a plan reads a schedule from a file and refuses what does not fit") {
  const test::TempFolder folder;
  const std::string path = (folder / "s.csv").string();
  const PipelineSchedule schedule =
      make_schedule({.name = "interleaved", .devices = 2, .microbatches = 4});
  std::string text;
  for (const auto& device : schedule.actions) {
    for (const PipelineAction& action : device) text += to_string(action) + ",";
    text += "\n";
  }
  test::write_file(path, text);
  const PipelinePlan plan = plan_pipeline({.microbatches = 4, .schedule = path}, 2, gpt_layers());
  CHECK(plan.schedule == schedule);
  CHECK(plan.split.costs.size() == 4);
  CHECK_THROWS_AS(plan_pipeline({.microbatches = 4, .schedule = "gpipe"}, 11, gpt_layers()),
                  ConfigError);
  CHECK_THROWS_WITH(plan_pipeline({.microbatches = 4, .schedule = "gpipe"}, 2, gpt_layers(), 3),
                    Contains("at least 4 microbatches"));
}

TEST_CASE("a schedule is drawn as rows of characters") {
  CHECK(picture("1f1b", 2, 3) ==
        "device 0  F0 F1       B0--- F2 B1---    B2---\n"
        "device 1     F0 B0--- F1 B1--- F2 B2---\n");
  for (const char* name : {"gpipe", "1f1b", "zb_h1"}) {
    INFO(name);
    CHECK_THAT(docs(), Contains(picture(name, 4, 4)));
  }
  CHECK_THAT(docs(), Contains(picture("interleaved", 2, 4)));
  CHECK_THAT(docs(), Contains(picture("zb_v", 2, 4)));
  // Stages are named where a device has several.
  CHECK_THAT(picture("zb_v", 2, 3), Contains("device 0  0F0 0F1 0F2 3F0 "));

  const PipelineSchedule schedule =
      make_schedule({.name = "1f1b", .devices = 2, .microbatches = 3});
  const ScheduleTimes times = simulate_schedule(schedule, equal_costs(schedule));
  CHECK_FALSE(draw_schedule(times, 40));
  CHECK(draw_schedule(times, 46));
  CHECK_FALSE(draw_schedule(simulate_schedule(schedule, {{0, 0, 0}, {0, 0, 0}}), 200));
}

TEST_CASE("the documentation's table of idle shares is the simulator's") {
  const auto row = [](const char* name, const std::string& formula) {
    std::string text = str("| `", name, "` | ", formula, " |");
    for (const int64_t microbatches : {4, 8, 16, 32}) {
      const PipelineSchedule schedule =
          make_schedule({.name = name, .devices = 4, .microbatches = microbatches});
      const double share = simulate_schedule(schedule, equal_costs(schedule)).idle_share;
      char percent[16];
      std::snprintf(percent, sizeof percent, " %.1f %% |", 100 * share);
      text += percent;
    }
    return text;
  };
  const std::string text = docs();
  CHECK_THAT(text, Contains(row("gpipe", "(p − 1) / (m + p − 1)")));
  CHECK_THAT(text, Contains(row("1f1b", "(p − 1) / (m + p − 1)")));
  CHECK_THAT(text, Contains(row("interleaved", "(p − 1) / (v m + p − 1)")));
  CHECK_THAT(text, Contains(row("zb_h1", "(p − 1) / (3 m + p − 1)")));
  CHECK_THAT(text, Contains(row("zb_v", "(p − 1) / (6 m + p − 1)")));
}

}  // namespace pipeline_plan_test
