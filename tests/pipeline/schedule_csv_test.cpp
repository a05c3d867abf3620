#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/mesh/pipeline_options.hpp>
#include <tessera/framework/pipeline/check_schedule.hpp>
#include <tessera/framework/pipeline/make_schedule.hpp>
#include <tessera/framework/pipeline/schedule_csv.hpp>

#include "tests/support/files.hpp"

using namespace tessera;
using namespace tessera::detail;
using Catch::Contains;

namespace schedule_csv_test {

TEST_CASE("a schedule is written and read in PyTorch's format") {
  CHECK(to_csv(make_schedule({.name = "1f1b", .devices = 2, .microbatches = 2})) ==
        "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  for (const std::string& name : pipeline_schedule_names()) {
    INFO(name);
    const PipelineSchedule schedule =
        make_schedule({.name = name, .devices = 3, .microbatches = 7});
    const std::string text = to_csv(schedule);
    CHECK(parse_schedule(text, "s.csv") == schedule);
    const PipelineSchedule lowered = with_transfers(schedule);
    CHECK(parse_schedule(to_csv(lowered), "s.csv") == lowered);
  }
}

TEST_CASE("blank entries, blanks and ends of lines change nothing") {
  // PyTorch's csv.writer ends lines with \r\n, and writes idle time as blank entries.
  const PipelineSchedule schedule = parse_schedule("0F0,,,0B0\r\n, 1F0 ,1B0\t,\r\n\r\n", "s.csv");
  CHECK(schedule == make_schedule({.name = "gpipe", .devices = 2, .microbatches = 1}));
  check_schedule(schedule);
}

TEST_CASE("errors of a schedule name the line and column") {
  const std::pair<std::string, const char*> cases[] = {
      {"0F0,0B0\n1F0,1X0", "[s.csv:2:5] an action is a stage, F, I, W, B"},
      {"0F0,  F0", "[s.csv:1:7] an action is"},
      {"0F", "Received: \"0F\""},
      {"0F0 0B0", "[s.csv:1:1]"},
      {"0F0;0B0", "Received: \"0F0;0B0\""},
      {"-1F0", "[s.csv:1:1]"},
      {"0f0", "[s.csv:1:1]"},
      {"0F0,0UNSHARD", "[s.csv:1:5] a schedule computes, sends and receives"},
      {"(0F0;1B0)OVERLAP_F_B", "[s.csv:1:1]"},
      {"\"0F0\"", "[s.csv:1:1]"},
      {"0F100000", "less than 100000"},
      {"99999999999999999999F0", "less than 100000"},
      {"99999F99999", "has an F for each pair of them"},
      {"0F0,0B0\n\n1F0,1B0", "[s.csv:2:1] a line has the actions of a device"},
      {"0F0,0B0\n,,", "[s.csv:2:1] a line has the actions"},
      {"", "an empty file"},
      {"\n\n", "an empty file"},
      {std::string("0F0\0,0B0", 8), "[s.csv:1:1]"},
      {"\xEF\xBB\xBF"
       "0F0",
       "[s.csv:1:1]"},
      {"1F0,1B0", "no action of stage 0"},
      {"0SEND_F0,0RECV_B0\n1F0,1B0", "no action of stage 0"}};
  for (const auto& [text, part] : cases) {
    INFO(text);
    CHECK_THROWS_AS(parse_schedule(text, "s.csv"), ConfigError);
    CHECK_THROWS_WITH(parse_schedule(text, "s.csv"), Contains(part));
  }
}

TEST_CASE("a file of a schedule is checked when it is read") {
  const test::TempFolder folder;
  const std::string path = (folder.path() / "s.csv").string();
  const auto write = [&](const std::string& text) { test::write_file(path, text); };
  write(to_csv(make_schedule({.name = "zb_v", .devices = 2, .microbatches = 3})));
  CHECK(read_schedule_file(path) ==
        make_schedule({.name = "zb_v", .devices = 2, .microbatches = 3}));
  write("0F0,0B0\n0F0,1F0,1B0\n");
  CHECK_THROWS_WITH(
      read_schedule_file(path),
      Contains(path + ": device 1, stage 0, microbatch 0]") && Contains("stage 0 is on device 0"));
  CHECK_THROWS_AS(read_schedule_file(path + "x"), FileError);

  PipelineParallelOptions options{.microbatches = 3, .schedule = path};
  write(to_csv(make_schedule({.name = "zb_v", .devices = 2, .microbatches = 3})));
  CHECK(make_schedule(options, 2).stages() == 4);
  CHECK_THROWS_WITH(make_schedule(options, 3), Contains("2 devices") && Contains("3"));
  CHECK(make_schedule(options, 2, {}, 2).stages() == 4);
  CHECK_THROWS_WITH(make_schedule(options, 2, {}, 1.5), Contains("at most 1.5 microbatches"));
  options.microbatches = 4;
  CHECK_THROWS_WITH(make_schedule(options, 2), Contains("3 microbatches"));
  options.microbatches = 3;
  options.chunks = 1;
  CHECK_THROWS_WITH(make_schedule(options, 2), Contains("2 chunks"));
  options.schedule = "1f1b";
  CHECK(make_schedule(options, 2) ==
        make_schedule({.name = "1f1b", .devices = 2, .microbatches = 3}));
}

}  // namespace schedule_csv_test
