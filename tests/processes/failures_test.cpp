#include <algorithm>
#include <csignal>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace failures_test {

using namespace tessera::test;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds max_delay = std::chrono::seconds(5);

/// Checks that every rank but the faulty one ends with code 3 and one line with all of these texts.
void check_others(const std::vector<RankEnd>& ends, int odd,
                  const std::vector<std::string>& texts) {
  for (int rank = 0; rank < static_cast<int>(ends.size()); ++rank) {
    const RankEnd& end = ends[static_cast<size_t>(rank)];
    if (rank == odd) continue;
    CAPTURE(rank, end.out, end.err);
    CHECK(end.exit_code == 3);
    CHECK(line_count(end.err) == 1);
    for (const std::string& text : texts) CHECK_THAT(end.err, Catch::Contains(text));
  }
}

void check_in_time(const std::vector<RankEnd>& ends, milliseconds since) {
  for (const RankEnd& end : ends) CHECK((end.at - since) <= max_delay);
}

void check_end_together(const std::vector<RankEnd>& ends) {
  const auto earlier = [](const RankEnd& a, const RankEnd& b) { return a.at < b.at; };
  check_in_time(ends, std::min_element(ends.begin(), ends.end(), earlier)->at);
}

/// Returns the path of the report that processes left in their folder.
std::filesystem::path find_report(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> reports;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") reports.push_back(entry.path());
  }
  REQUIRE(reports.size() == 1);
  return reports[0];
}

}  // namespace

TEST_CASE("a killed process: all others end within seconds and name it") {
  struct Case {
    std::string phase, op;
    int rank;
  };
  const Case moment = GENERATE(values<Case>({{"connected", "", 2},
                                             {"forward", "step 4", 2},
                                             {"forward", "step 4", 0},
                                             {"backward", "step 4", 3},
                                             {"update", "all_reduce", 1},
                                             {"save", "step 5", 2},
                                             {"evaluate", "step", 2}}));
  CAPTURE(moment.phase, moment.rank);
  const TempFolder folder;
  std::vector<std::string> arguments = {"fault=kill", "at=" + moment.phase,
                                        "rank=" + std::to_string(moment.rank), "step=3"};
  if (moment.phase == "connected") arguments.back() = "step=0";
  if (moment.phase == "save") {
    arguments.back() = "step=4";
    arguments.push_back("checkpoints=" + folder.path().string());
  }
  if (moment.phase == "evaluate") {
    arguments.back() = "step=10";
    arguments.emplace_back("validate=1");
  }
  const std::vector<RankEnd> ends = run_ranks_program(4, arguments);
  const RankEnd& killed = ends[static_cast<size_t>(moment.rank)];
  CHECK(killed.exit_code == 128 + SIGKILL);
  check_others(ends, moment.rank,
               {"rank " + std::to_string(moment.rank) + " (pid ", "was lost", moment.op});
  check_in_time(ends, killed.at);
}

TEST_CASE("a process killed on a two-dimensional mesh: the line names op and dimension") {
  const std::vector<RankEnd> ends = run_ranks_program(
      4, {"mesh=batch=2,model=2", "layouts=model", "fault=kill", "at=forward", "rank=3", "step=2"});
  check_others(ends, 3, {"rank 3 (pid ", "was lost", "step 3", "hidden_2"});
  CHECK_THAT(ends[2].err, Catch::Contains("on model"));
}

TEST_CASE("a stopped process is detected after the timeout and named") {
  const std::string how = GENERATE("stop", "hang");
  const int rank = GENERATE(1, 0);
  CAPTURE(how, rank);
  Processes processes(3, app_path("rank_program"),
                      {"mesh=batch=3", "batch=30", "timeout=2000", "fault=" + how, "at=forward",
                       "rank=" + std::to_string(rank), "step=3"});
  std::vector<int> others;
  for (int r = 0; r < 3; ++r) {
    if (r != rank) others.push_back(r);
  }
  REQUIRE(processes.writes(0, "step 3 loss", std::chrono::seconds(20)));
  const std::string name = "rank " + std::to_string(rank) + " (pid ";
  CHECK(processes.writes(2, name, milliseconds(2000 + 2000)));
  const std::vector<RankEnd> ends = processes.wait(std::chrono::seconds(30), others);
  for (int r : others) {
    const RankEnd& end = ends[static_cast<size_t>(r)];
    CAPTURE(r, end.err);
    CHECK(end.exit_code == 3);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains(name) && Catch::Contains("step 4"));
  }
}

TEST_CASE("mismatched collectives: an error on all ranks with both calls") {
  const std::string kind = GENERATE("shape", "dtype", "op", "order", "skip", "twice");
  const int step = GENERATE(2, 30);
  const bool always = step == 30 && GENERATE(false, true);
  CAPTURE(kind, step, always);
  const std::vector<RankEnd> ends = run_ranks_program(
      4, {"epochs=5", "timeout=4000", "fault=" + kind, "at=call", "rank=2",
          "step=" + std::to_string(step), always ? "always_check=1" : "always_check=0"});
  check_end_together(ends);
  for (const RankEnd& end : ends) {
    CAPTURE(end.out, end.err);
    CHECK(end.exit_code == 3);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains("rank 2"));
    CHECK_THAT(end.err, Catch::Contains("all_gather") || Catch::Contains("all_reduce"));
  }
}

TEST_CASE("a report has the last calls of every rank, and the error has its path") {
  Processes processes(4, app_path("rank_program"), {"fault=op", "at=call", "rank=2", "step=2"});
  const std::vector<RankEnd> ends = processes.wait(std::chrono::minutes(2));
  const std::filesystem::path path = find_report(processes.folder());
  for (const RankEnd& end : ends) CHECK_THAT(end.err, Catch::Contains(path.string()));
  const tessera::Json report = tessera::parse_json(read_file(path), path.string());
  CHECK_THAT(report["reason"].get<std::string>(), Catch::Contains("rank 2"));
  REQUIRE(report["ranks"].size() == 4);
  // The run ends as soon as two calls differ: another rank may not have reached it yet.
  int gathers = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const tessera::Json& one = report["ranks"][static_cast<size_t>(rank)];
    CAPTURE(rank, one.dump());
    CHECK(one["rank"] == rank);
    REQUIRE(!one["calls"].empty());
    const auto last = one["calls"].back()["text"].get<std::string>();
    const bool gathered = last.find("all_gather") != std::string::npos;
    CHECK((gathered || last.find("all_reduce") != std::string::npos));
    if (rank == 2) CHECK(!gathered);
    gathers += gathered;
  }
  CHECK(gathers >= 1);
}

TEST_CASE("an error on one rank reaches the others with its text") {
  const std::string phase = GENERATE("forward", "backward", "evaluate");
  CAPTURE(phase);
  const bool evaluates = phase == "evaluate";
  const std::vector<RankEnd> ends =
      run_ranks_program(4, {"fault=throw", "at=" + phase, "rank=1",
                            evaluates ? "step=10" : "step=3", evaluates ? "validate=1" : "x=0"});
  CHECK(ends[1].exit_code == 1);
  CHECK_THAT(ends[1].err, Catch::Contains("the planted error"));
  check_others(ends, 1, {"rank 1", "the planted error"});
}

TEST_CASE("a process that exits silently is detected at once") {
  const std::vector<RankEnd> ends =
      run_ranks_program(4, {"fault=exit", "at=forward", "rank=1", "step=3"});
  CHECK(ends[1].exit_code == 3);
  check_others(ends, 1, {"rank 1 (pid ", "step 4"});
}

TEST_CASE("a NaN loss on one rank stops all ranks in the same step") {
  const std::vector<RankEnd> ends = run_ranks_program(4, {"fault=nan", "rank=2", "step=6"});
  for (const RankEnd& end : ends) {
    CAPTURE(end.err);
    CHECK(end.exit_code == 1);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains("step 7") && Catch::Contains("rank 2"));
  }
  CHECK(losses(ends[0]).size() == 6);
}

TEST_CASE("processes started with different options are refused") {
  struct Case {
    std::string argument, key;
  };
  const Case odd = GENERATE(values<Case>({{"odd_seed=8", "seed"},
                                          {"odd_rows=300", "rows"},
                                          {"odd_layouts=fsdp", "layout"},
                                          {"odd_mesh=batch=2,model=2", "mesh"}}));
  CAPTURE(odd.argument);
  const std::vector<RankEnd> ends = run_ranks_program(4, {"rank=3", odd.argument});
  check_end_together(ends);
  for (const RankEnd& end : ends) {
    CAPTURE(end.err);
    CHECK(end.exit_code == 1);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains(odd.key) && Catch::Contains("rank 3"));
  }
  CHECK(losses(ends[0]).empty());
}

}  // namespace failures_test
