#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>

#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/cluster_tasks.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/program.hpp"

namespace parameter_server_apps_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using std::chrono::seconds;
using Words = std::vector<std::string>;

constexpr seconds patience(180);

/// Real data if there is any, else synthetic data.
ProcessGroup::Variables environment() {
  static const TempFolder cache;
  return {{"TESSERA_DATA", real_data_folder()},
          {"XDG_CACHE_HOME", cache.path()},
          {"OMP_NUM_THREADS", "1"}};
}

Words mnist_words(int epochs, const std::filesystem::path& checkpoints, const Words& more = {}) {
  Words words = {"--strategy",       "parameter_server",     "--hidden",     "128",
                 "--epochs",         std::to_string(epochs), "--verbose",    "2",
                 "--checkpoint-dir", checkpoints.string(),   "--save-every", "20"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

ClusterTasks mnist(const Words& words) {
  return ClusterTasks({}, app_path("mnist"), words, environment());
}

int64_t newest(const std::filesystem::path& folder) {
  const std::vector<CheckpointEntry> entries = list_checkpoints(folder.string());
  return entries.empty() ? 0 : entries.back().step;
}

/// Whether a checkpoint of this step or a later one appears within `patience`.
bool saves(const std::filesystem::path& folder, int64_t step) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (newest(folder) < step && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return newest(folder) >= step;
}

/// The number after "test accuracy ".
double accuracy(const std::string& text) {
  const std::string before = "test accuracy ";
  const size_t at = text.find(before);
  INFO(text);
  REQUIRE(at != text.npos);
  return std::stod(text.substr(at + before.size()));
}

/// Checks that the run resumes from its newest checkpoint and completes.
void check_resumes(const std::filesystem::path& folder, int epochs) {
  ClusterTasks tasks = mnist(mnist_words(epochs, folder, {"--resume"}));
  const RankEnd& end = tasks.end("chief", patience);
  CAPTURE(end.out, end.err);
  CHECK(end.exit_code == 0);
  CHECK_THAT(end.out, !Contains("Epoch 1/") && Contains(str("Epoch ", epochs, "/", epochs)));
  CHECK(accuracy(end.out) > 0.6);
  CHECK(newest(folder) == epochs * 40);
}

}  // namespace

TEST_CASE("the custom loop on parameter servers", "[parameter_server]") {
  ClusterTasks tasks({}, app_path("parameter_server"), {});
  tasks.wait_all(patience);
  const std::string out = tasks.end("chief", patience).out;
  for (const std::string& task : tasks.tasks()) {
    CAPTURE(task, tasks.text(task));
    CHECK(tasks.end(task, patience).exit_code == 0);
    CHECK((task == "chief" || tasks.text(task).empty()));
  }
  const size_t at = out.find("240 steps: loss ");
  REQUIRE(at != out.npos);
  CHECK(std::stod(out.substr(at + 16)) < 0.3);
  CHECK_THAT(out, Contains("rescheduled: 0") && Contains("parameter server: 240 240\n"));
}

TEST_CASE("launch trains mnist on parameter servers, with an evaluator", "[parameter_server]") {
  const TempFolder folder;
  Words words = {"-n", "2", "--ps", "2", "--evaluator", "--", "mnist"};
  const Words more = mnist_words(8, folder / "saved");
  words.insert(words.end(), more.begin(), more.end());
  const ProgramRun run = run_program(app_path("launch"), words, environment());
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err, !Contains("launch: "));
  CHECK(accuracy(run.out) >= 0.9);
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    CHECK((line.rfind("[chief] ", 0) == 0 || line.rfind("[evaluator] evaluation of", 0) == 0));
  }
  const std::string csv = read_file(folder / "saved/evaluations.csv");
  CHECK_THAT(csv, Catch::StartsWith("step,checkpoint,") && Contains("\n320,step-000320,"));
  CHECK(line_count(csv) >= 3);
}

TEST_CASE("mnist continues when a worker is killed and restarted", "[parameter_server]") {
  const TempFolder folder;
  ClusterTasks tasks = mnist(mnist_words(6, folder / "saved"));
  REQUIRE(saves(folder / "saved", 40));
  tasks.kill("worker 0");
  tasks.restart("worker 0");
  for (const std::string& task : tasks.tasks()) {
    const RankEnd& end = tasks.end(task, patience);
    CAPTURE(task, end.out, end.err);
    CHECK(end.exit_code == 0);
  }
  CHECK(newest(folder / "saved") == 240);
  CHECK(accuracy(tasks.text("chief")) > 0.8);
}

TEST_CASE("mnist resumes after a parameter server was killed or the coordinator was told to stop",
          "[parameter_server]") {
  const bool stops = GENERATE(false, true);
  CAPTURE(stops);
  const TempFolder folder;
  {
    ClusterTasks tasks = mnist(mnist_words(100, folder / "saved"));
    REQUIRE(saves(folder / "saved", 60));
    tasks.signal(stops ? "chief" : "ps 0", stops ? SIGTERM : SIGKILL);
    for (const std::string& task : tasks.tasks()) {
      const RankEnd& end = tasks.end(task, seconds(30));
      CAPTURE(task, end.out, end.err);
      if (task == "ps 0" && !stops) continue;
      CHECK(end.exit_code == (stops && task == "chief" ? 128 + SIGTERM : 3));
      const std::string line =
          str("[the coordinator (", tasks.address("chief"), ")] the fit was interrupted");
      const std::string stopped = task == "chief" ? "SIGTERM" : line;
      CHECK_THAT(end.err, Contains(stops ? stopped : str("ps 0 (", tasks.address("ps 0"), ")")));
    }
  }
  const int64_t saved = newest(folder / "saved");
  CHECK(saved >= 60);
  check_resumes(folder / "saved", static_cast<int>(saved / 40) + 2);
}

}  // namespace parameter_server_apps_test
