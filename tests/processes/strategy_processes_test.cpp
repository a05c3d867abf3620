#include <cmath>
#include <sstream>

#include <tessera/framework/base/json.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/cluster_tasks.hpp"
#include "tests/support/program.hpp"

namespace strategy_processes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const ClusterShape two_workers = {.chief = false, .workers = 2, .servers = 0};
constexpr auto patience = std::chrono::minutes(2);

std::vector<double> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> list;
  for (double number; in >> number;) list.push_back(number);
  return list;
}

/// Checks that the losses are the first of the guide's, within 1e-5.
void check_guide(const std::vector<double>& losses, size_t count) {
  const Json golden = read_json_file(golden_path("distribute_guide.json").string());
  const auto golden_losses = golden.at("losses").get<std::vector<double>>();
  REQUIRE(losses.size() == count);
  double max_difference = 0;
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(std::isfinite(losses[i]));
    max_difference = std::max(max_difference, std::abs(losses[i] - golden_losses.at(i)));
  }
  CHECK(max_difference <= 1e-5);
}

void check_ends(ClusterTasks& tasks) {
  tasks.wait_all(patience);
  for (const std::string& task : tasks.tasks()) {
    const RankEnd& end = tasks.end(task, patience);
    CAPTURE(task, end.out, end.err);
    CHECK(end.exit_code == 0);
    CHECK(end.err.empty());
  }
}

}  // namespace

TEST_CASE("MultiWorkerMirrored by TF_CONFIG: the guide's 210 losses, by loop and by fit") {
  const std::string by = GENERATE("loop", "fit");
  CAPTURE(by);
  ClusterTasks tasks(two_workers, app_path("strategy_program"), {"by=" + by});
  check_ends(tasks);
  for (const char* task : {"worker 0", "worker 1"}) {
    check_guide(numbers(tasks.end(task, patience).out), 210);
  }
}

TEST_CASE("the guide's programs by TF_CONFIG: only the first process prints") {
  const std::vector<std::string> strategy = {"--strategy", "multi_worker_mirrored"};
  SECTION("custom loop") {
    ClusterTasks tasks(two_workers, app_path("distribute_loop"), strategy);
    check_ends(tasks);
    check_guide(numbers(tasks.end("worker 0", patience).out), 210);
    CHECK(tasks.text("worker 1").empty());
  }
  SECTION("custom loop, a chief with two devices and a worker with two, short batches") {
    std::vector<std::string> words = strategy;
    words.insert(words.end(), {"--devices", "2", "--batch-size", "16"});
    ClusterTasks tasks({.chief = true, .workers = 1, .servers = 0}, app_path("distribute_loop"),
                       words);
    check_ends(tasks);
    check_guide(numbers(tasks.end("chief", patience).out), 73);
    CHECK(tasks.text("worker 0").empty());
  }
  SECTION("fit") {
    ClusterTasks tasks(two_workers, app_path("distribute_fit"), strategy);
    check_ends(tasks);
    const std::string out = tasks.end("worker 0", patience).out;
    CHECK_THAT(out, Catch::Contains("MultiWorkerMirroredStrategy: 2 replicas in sync\n"));
    CHECK_THAT(out, Catch::Contains("Epoch 2/2\n10/10"));
    CHECK(tasks.text("worker 1").empty());
  }
}

TEST_CASE("launch sets TF_CONFIG for each worker") {
  const ProgramRun run = run_program(
      app_path("launch"),
      {"-n", "2", "--tf-config", "--", "distribute_loop", "--strategy", "multi_worker_mirrored"});
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
  std::vector<double> losses;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.rfind("[0] ", 0) == 0);
    losses.push_back(std::stod(line.substr(4)));
  }
  check_guide(losses, 210);
}

TEST_CASE("an invalid TF_CONFIG ends a program with one line that names the key") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"cluster": {"worker": ["127.0.0.1:1"]}})", "[TF_CONFIG] the key \"task\" is required"},
      {R"({"cluster": {"worker": ["a:1", "a:1"]}, "task": {"type": "worker", "index": 0}})",
       "[TF_CONFIG: cluster.worker[1]] must have a unique address"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0, "index": 0}})",
       "[TF_CONFIG:1:79] a key may appear only once in an object. Received: \"index\" again"},
      {R"({"cluster": )", "[TF_CONFIG:1:12] the text must be valid JSON"},
      {R"({"cluster": {"boss": ["a:1"]}, "task": {"type": "boss", "index": 0}})",
       "[TF_CONFIG: cluster.boss] must be a type of task. Received: \"boss\""}};
  for (const auto& [config, expected] : cases) {
    const ProgramRun run =
        run_program(app_path("distribute_loop"), {"--strategy", "multi_worker_mirrored"},
                    {{"TF_CONFIG", config}});
    CAPTURE(config, run.err);
    CHECK(run.exit_code == 1);
    CHECK(line_count(run.err) == 1);
    CHECK_THAT(run.err, Catch::StartsWith("distribute_loop: error: " + expected));
  }
}

}  // namespace strategy_processes_test
