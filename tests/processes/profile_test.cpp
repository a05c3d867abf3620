#include <regex>

#include <tessera/framework/base/json.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/idx_files.hpp"

namespace profile_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// The output of a rank about one kind of collective.
struct Collective {
  int64_t spans = 0, entries = 0;
  bool waited = false;
};

Collective collective(const RankEnd& end, const std::string& name) {
  const std::regex pattern("(^|\n)" + name + ": (\\d+) bytes, logged (\\d+), waited (yes|no)\n");
  std::smatch match;
  CAPTURE(end.out);
  REQUIRE(std::regex_search(end.out, match, pattern));
  return {std::stoll(match[2]), std::stoll(match[3]), match[4] == "yes"};
}

}  // namespace

TEST_CASE("a rank's profile has the bytes of the communication log, and the waiting") {
  const auto [layouts, used] = GENERATE(table<std::string, std::vector<std::string>>(
      {{"data", {"all_reduce"}}, {"fsdp", {"all_gather", "reduce_scatter"}}}));
  CAPTURE(layouts);
  const std::vector<RankEnd> ends =
      run_ranks_program(2, {"mesh=batch=2", "layouts=" + layouts, "rows=70", "profile=1"});
  for (const RankEnd& end : ends) {
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    for (const char* name : {"all_reduce", "all_gather", "reduce_scatter"}) {
      const Collective seen = collective(end, name);
      CHECK(seen.spans == seen.entries);
    }
    for (const std::string& name : used) {
      CHECK(collective(end, name).spans > 0);
      CHECK(collective(end, name).waited);
    }
  }
}

TEST_CASE("each rank writes its trace, rank 0 prints the table") {
  const TempFolder folder;
  write_mnist(folder / "data", 40, 20);
  const std::string trace = folder / "trace.json";
  Processes processes(
      2, app_path("mnist"),
      {"--data-dir", folder / "data", "--train-size", "all", "--test-size", "all", "--hidden", "6",
       "--batch-size", "10", "--epochs", "1", "--mesh", "batch=2", "--profile", trace});
  const std::vector<RankEnd> ends = processes.wait(std::chrono::minutes(2));
  for (size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(ends[rank].err);
    REQUIRE(ends[rank].exit_code == 0);
    const std::string path = folder / ("trace-rank-" + std::to_string(rank) + ".json");
    size_t reductions = 0;
    for (const Json& event : read_json_file(path)) {
      reductions += event.at("ph") == "X" && event.at("name") == "all_reduce";
    }
    CHECK(reductions > 0);
  }
  CHECK(!std::filesystem::exists(trace));
  CHECK_THAT(ends[0].out, Contains("trace-rank-0.json") && Contains("collective  all_reduce"));
  CHECK(ends[1].out == "");
}

}  // namespace profile_test
