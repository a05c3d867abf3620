#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"

namespace start_test {

using namespace tessera::test;
using std::chrono::milliseconds;

TEST_CASE("several processes give the losses of one") {
  struct Case {
    std::string layouts, mesh;
  };
  const Case scheme = GENERATE(values<Case>({{"data", "batch=4"},
                                             {"model", "batch=2,model=2"},
                                             {"model", "model=4"},
                                             {"feature", "feature=2,model=2,batch=1"},
                                             {"fsdp", "batch=4"}}));
  CAPTURE(scheme.layouts, scheme.mesh);
  const std::vector<std::string> arguments = {"mesh=" + scheme.mesh, "layouts=" + scheme.layouts,
                                              "rows=330", "validate=1"};
  const std::vector<double> expected = losses(run_ranks_program(1, arguments)[0]);
  REQUIRE(expected.size() == 22);
  for (const int count : {2, 4}) {
    const bool shared = count == 2;
    std::vector<std::string> all = arguments;
    all.emplace_back(shared ? "shared_memory=1" : "shared_memory=0");
    const std::vector<RankEnd> ends = run_ranks_program(count, all);
    for (const RankEnd& end : ends) {
      CAPTURE(end.err);
      CHECK(end.exit_code == 0);
      CHECK(end.err.empty());
    }
    const std::vector<double> got = losses(ends[0]);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-9));
  }
}

TEST_CASE("three processes hold 1, 1 and 2 of 4 rows of a mesh, and give the losses of one") {
  const std::vector<std::string> arguments = {"mesh=batch=4,model=2", "layouts=model", "rows=330"};
  const std::vector<double> expected = losses(run_ranks_program(1, arguments)[0]);
  const std::vector<RankEnd> ends = run_ranks_program(3, arguments);
  for (const RankEnd& end : ends) {
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(end.err.empty());
  }
  const std::vector<double> got = losses(ends[0]);
  REQUIRE(got.size() == 22);
  REQUIRE(expected.size() == 22);
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("processes that form no grid of the mesh are refused, naming numbers that do") {
  for (const RankEnd& end : run_ranks_program(3, {"mesh=batch=2,model=2"})) {
    CHECK(end.exit_code != 0);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains("To fix: start 2 or 4 processes"));
  }
}

TEST_CASE("processes that encrypt give the losses of those that do not, and need a secret") {
  const std::vector<std::string> arguments = {"mesh=batch=4", "rows=330", "shared_memory=0"};
  const auto run = [&](const Processes::Variables& variables) {
    Processes processes(2, app_path("rank_program"), arguments, variables);
    return processes.wait(std::chrono::minutes(2));
  };
  const std::string secret(32, 's');
  const std::vector<RankEnd> plain = run({{"TESSERA_SECRET", secret}});
  const std::vector<RankEnd> encrypted =
      run({{"TESSERA_SECRET", secret}, {"TESSERA_ENCRYPT", "1"}});
  for (size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(plain[rank].err, encrypted[rank].err);
    CHECK(encrypted[rank].exit_code == 0);
    CHECK(encrypted[rank].err.empty());
    CHECK(losses(encrypted[rank]) == losses(plain[rank]));
  }
  CHECK_FALSE(losses(plain[0]).empty());
  for (const RankEnd& end : run({{"TESSERA_ENCRYPT", "1"}})) {
    CHECK(end.exit_code != 0);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains("encryption (--encrypt, TESSERA_ENCRYPT=1) needs the "
                                        "job's secret. Received: no secret. To fix: "));
  }
}

TEST_CASE("Normalization learns from each row once, on any number of processes") {
  const auto learned = [](const RankEnd& end) {
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    std::istringstream words(end.out);
    std::string word;
    int64_t read = 0;
    std::vector<double> numbers;
    words >> word >> read;
    for (double number = 0; words >> number;) numbers.push_back(number);
    REQUIRE(numbers.size() == 6);
    return std::pair(read, numbers);
  };
  for (const int64_t rows : {2501, 3}) {
    const std::string adapt = "adapt=" + std::to_string(rows);
    const auto [all, expected] = learned(run_ranks_program(1, {adapt})[0]);
    CHECK(all == rows);
    for (const int count : {2, 4}) {
      const std::vector<RankEnd> ends = run_ranks_program(count, {adapt});
      int64_t read = 0;
      for (const RankEnd& end : ends) {
        const auto [own, numbers] = learned(end);
        read += own;
        CHECK(own <= (rows + count - 1) / count);
        CHECK(numbers == learned(ends[0]).second);
        for (size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == Approx(expected[i]));
      }
      CHECK(read == rows);
    }
  }
}

TEST_CASE("replicas stay bitwise equal on all processes") {
  for (const char* shared : {"shared_memory=1", "shared_memory=0"}) {
    const std::vector<RankEnd> ends = run_ranks_program(4, {"epochs=6", "rows=330", shared});
    const auto weights = [](const RankEnd& end) {
      return end.out.substr(end.out.find("weights "));
    };
    for (const RankEnd& end : ends) {
      REQUIRE(end.exit_code == 0);
      CHECK(weights(end) == weights(ends[0]));
    }
  }
}

TEST_CASE("a port in use and a missing rank are named") {
  Processes first(2, app_path("rank_program"),
                  {"mesh=batch=2", "connect_timeout=3000", "fault=kill", "at=start", "rank=1"});
  REQUIRE(first.writes(0, "waiting for rank", std::chrono::seconds(20)));
  Processes second(1, app_path("rank_program"), {"mesh=batch=2", "connect_timeout=1000"},
                   {{"WORLD_SIZE", "2"}, {"MASTER_PORT", std::to_string(first.port())}});
  const RankEnd taken = second.wait(std::chrono::seconds(20))[0];
  CHECK(taken.exit_code == 3);
  CHECK_THAT(taken.err, Catch::Contains(std::to_string(first.port())));
  const RankEnd alone = first.wait(std::chrono::seconds(20))[0];
  CAPTURE(alone.err);
  CHECK(alone.exit_code == 3);
  CHECK_THAT(alone.err, Catch::Contains("no sign of rank 1"));
}

TEST_CASE("a signal saves and ends all processes, which resume where they stopped") {
  const int number = GENERATE(SIGTERM, SIGINT);
  CAPTURE(number);
  const TempFolder folder;
  const std::vector<std::string> arguments = {"mesh=batch=4", "rows=640", "epochs=40",
                                              "backup=" + folder.path().string(), "every=1000"};
  const std::vector<double> uninterrupted =
      losses(run_ranks_program(2, {"mesh=batch=4", "rows=640", "epochs=40"})[0]);
  Processes processes(2, app_path("rank_program"), arguments);
  REQUIRE(processes.writes(0, "step 30 ", std::chrono::seconds(60)));
  processes.signal(1, number);
  const std::vector<RankEnd> ends = processes.wait(std::chrono::seconds(20));
  for (const RankEnd& end : ends) {
    CAPTURE(end.err);
    CHECK(end.exit_code == 128 + number);
    CHECK(line_count(end.err) == 1);
    CHECK_THAT(end.err, Catch::Contains("rank 1"));
  }
  std::vector<double> got = losses(ends[0]);
  REQUIRE(got.size() >= 30);
  REQUIRE(got.size() < uninterrupted.size());
  const std::vector<double> rest = losses(run_ranks_program(2, arguments)[0]);
  got.insert(got.end(), rest.begin(), rest.end());
  CHECK(got == uninterrupted);
}

TEST_CASE("a hundred runs leave no hang, no failure and no process", "[nightly]") {
  // Orphans of a rank become children of this process.
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  for (int run = 0; run < 100; ++run) {
    CAPTURE(run);
    for (const RankEnd& end : run_ranks_program(4, {"epochs=1", "rows=64"})) {
      CAPTURE(end.err);
      REQUIRE(end.exit_code == 0);
      REQUIRE(end.err.empty());
    }
    REQUIRE(children_of(::getpid()).empty());
  }
}

}  // namespace start_test
