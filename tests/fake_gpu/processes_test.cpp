#include <algorithm>
#include <csignal>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/processes.hpp"
#include "tests/support/program.hpp"

namespace processes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Words = std::vector<std::string>;

/// Starts mnist on two processes with a GPU each, or on one with both GPUs.
Processes start_mnist(const TempFolder& folder, int count, const Words& more,
                      const Processes::Variables& variables = {}) {
  Words words = {"--mesh",      "batch=2", "--dtype",  "float64", "--train-size", "640",
                 "--test-size", "64",      "--epochs", "1",       "--verbose",    "0"};
  words.insert(words.end(), more.begin(), more.end());
  const Processes::Variables all = {
      {"LD_PRELOAD", std::string(FAKE_GPU_LIBRARY) + " " + FAKE_NCCL_LIBRARY},
      {"TESSERA_FAKE_GPUS", "2"},
      {"TESSERA_DATA", ""},
      {"XDG_CACHE_HOME", folder.path()},
      {"TMPDIR", folder.path()}};
  return {count, app_path("mnist"), words, replaced(all, variables)};
}

std::vector<RankEnd> mnist(int count, const Words& more,
                           const Processes::Variables& variables = {}) {
  const TempFolder folder;
  return start_mnist(folder, count, more, variables).wait(std::chrono::minutes(2));
}

std::vector<double> losses(int count, const Words& more) {
  const TempFolder folder;
  const std::string file = folder / "history.json";
  Words words = {"--history", file};
  words.insert(words.end(), more.begin(), more.end());
  for (const RankEnd& end : mnist(count, words)) {
    CAPTURE(count, end.out, end.err);
    REQUIRE(end.exit_code == 0);
    CHECK(end.err == "");
  }
  return read_json_file(file).at("steps").get<std::vector<double>>();
}

}  // namespace

TEST_CASE("two processes with a GPU each train like one with both, and like CPUs") {
  const auto root = std::filesystem::path(TESSERA_TEST_DIR).parent_path();
  for (const char* layouts : {"data", "fsdp"}) {
    CAPTURE(layouts);
    const std::string file = std::string(layouts) + ".json";
    const Words words = {"--layouts", root / "apps/mnist/layouts" / file};
    Words on_cpus = words;
    on_cpus.insert(on_cpus.end(), {"--device", "cpu"});
    const std::vector<double> expected = losses(1, on_cpus);
    REQUIRE(expected.size() == 5);
    for (const int count : {1, 2}) {
      CAPTURE(count);
      const std::vector<double> got = losses(count, words);
      REQUIRE(got.size() == 5);
      for (size_t i = 0; i < 5; ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("an error in a process's NCCL ends all processes with a line that names it") {
  // The third group is the last of a step: after it, processes wait for the loss and call NCCL no
  // more.
  for (const char* group : {"1:2", "1:3"}) {
    for (const RankEnd& end : mnist(2, {}, {{"TESSERA_FAKE_NCCL_FAILS", group}})) {
      CAPTURE(group, end.out, end.err);
      CHECK(end.exit_code == 3);
      CHECK_THAT(end.err, Contains("NCCL calls succeed. Received: remote"));
      CHECK(std::count(end.err.begin(), end.err.end(), '\n') == 1);
    }
  }
}

TEST_CASE("a process that is killed during a step ends the others with a line that names it") {
  for (const int victim : {0, 1}) {
    const TempFolder folder;
    Processes processes = start_mnist(folder, 2, {"--epochs", "100000", "--verbose", "2"});
    // Only rank 0 prints its progress.
    REQUIRE(processes.writes(0, "Epoch 3/", std::chrono::minutes(1)));
    processes.signal(victim, SIGKILL);
    const std::vector<RankEnd> ends = processes.wait(std::chrono::minutes(1));
    const RankEnd& other = ends[size_t(1 - victim)];
    CAPTURE(victim, other.out, other.err);
    CHECK(ends[size_t(victim)].exit_code == 128 + SIGKILL);
    CHECK(other.exit_code == 3);
    CHECK_THAT(other.err, Contains("rank " + std::to_string(victim)));
    CHECK(std::count(other.err.begin(), other.err.end(), '\n') == 1);
  }
}

}  // namespace processes_test
