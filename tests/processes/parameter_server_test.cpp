#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include <tessera/framework/base/error.hpp>

#include "tests/processes/garbage.hpp"
#include "tests/processes/ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/cluster_tasks.hpp"

namespace parameter_server_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string>;

constexpr seconds patience(120);
// The time in which all tasks of a failed run must end.
constexpr seconds end_timeout(30);

Words words(int closures, const Words& more = {}) {
  Words all = {"closures=" + std::to_string(closures)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

ClusterTasks start(const Words& arguments, const Words& later = {}) {
  return ClusterTasks({}, app_path("server_program"), arguments, {}, later);
}

/// Returns standard error without the coordinator's messages about missing and lost tasks.
std::string complaints(const RankEnd& end) {
  std::istringstream lines(end.err);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const bool news = line.rfind("waiting for ", 0) == 0 || line.rfind("worker ", 0) == 0;
    if (!news) all += line + "\n";
  }
  return all;
}

/// Checks that the coordinator and all parameter servers counted every closure once.
void check_counts(ClusterTasks& tasks, int closures, const std::string& losses) {
  const RankEnd& end = tasks.end("chief", patience);
  CAPTURE(end.out, end.err);
  CHECK(end.exit_code == 0);
  CHECK(complaints(end).empty());
  CHECK_THAT(end.out, Contains(str("done ", closures, "\n")));
  CHECK_THAT(end.out, !Contains("by a worker 0\n"));
  std::string expected = losses + "\n";
  for (int i = 0; i < 4; ++i) expected += str("count ", closures, " ", closures, "\n");
  CHECK_THAT(end.out, Catch::EndsWith(expected));
}

void check_ends_well(ClusterTasks& tasks, const Words& without = {}) {
  for (const std::string& task : tasks.tasks()) {
    if (std::find(without.begin(), without.end(), task) != without.end()) continue;
    const RankEnd& end = tasks.end(task, end_timeout);
    CAPTURE(task, end.out, end.err);
    CHECK(end.exit_code == 0);
    CHECK(complaints(end).empty());
  }
}

/// Checks that all tasks but the lost one end with code 3 and one line that names it.
void check_lost(ClusterTasks& tasks, const std::string& lost) {
  for (const std::string& task : tasks.tasks()) {
    if (task == lost) continue;
    const RankEnd& end = tasks.end(task, end_timeout);
    CAPTURE(task, end.out, end.err);
    CHECK(end.exit_code == 3);
    CHECK(line_count(complaints(end)) == 1);
    const std::string name = lost == "chief" ? "coordinator" : lost;
    CHECK_THAT(complaints(end), Contains(str(name, " (", tasks.address(lost), ")")) &&
                                    Contains("lost") && Contains("the last checkpoint stays"));
  }
}

}  // namespace

TEST_CASE("closures are counted once, also if workers join late", "[parameter_server]") {
  const Words later = GENERATE(Words(), Words{"worker 1"});
  CAPTURE(later);
  const int closures = later.empty() ? 80 : 300;
  ClusterTasks tasks = start(words(closures), later);
  REQUIRE(tasks.writes("chief", "done 10\n", patience));
  for (const std::string& task : later) tasks.restart(task);
  check_counts(tasks, closures, "rescheduled 0 lost 0");
  check_ends_well(tasks);
}

TEST_CASE("a worker killed and restarted: no closure is lost, none counted twice",
          "[parameter_server]") {
  const std::string at = GENERATE("before", "after");
  CAPTURE(at);
  ClusterTasks tasks = start(words(150, {"task=worker 1", "fault=kill", "at=" + at, "step=6"}));
  REQUIRE(tasks.end("worker 1", patience).exit_code == 128 + SIGKILL);
  tasks.restart("worker 1");
  check_counts(tasks, 150, "rescheduled 1 lost 1");
  check_ends_well(tasks);
}

TEST_CASE("a worker killed for good, and all of them", "[parameter_server]") {
  const bool both = GENERATE(false, true);
  CAPTURE(both);
  ClusterTasks tasks = start(words(100));
  REQUIRE(tasks.writes("chief", "done 20\n", patience));
  tasks.signal("worker 0", SIGKILL);
  if (both) tasks.kill("worker 1");
  const RankEnd& killed = tasks.end("worker 0", end_timeout);
  CHECK(killed.exit_code == 128 + SIGKILL);
  if (both) tasks.restart("worker 1");
  check_counts(tasks, 100, both ? "rescheduled 2 lost 2" : "rescheduled 1 lost 1");
  check_ends_well(tasks, {"worker 0"});
}

TEST_CASE("a stopped worker is given up and does no harm when it continues", "[parameter_server]") {
  ClusterTasks tasks =
      start(words(400, {"timeout=2000", "task=worker 1", "fault=stop", "at=after", "step=6"}));
  REQUIRE(tasks.writes("chief", "done 150\n", patience));
  tasks.signal("worker 1", SIGCONT);
  check_counts(tasks, 400, "rescheduled 1 lost 1");
  check_ends_well(tasks, {"worker 1"});
}

TEST_CASE("a lost parameter server ends all tasks with one line that names it",
          "[parameter_server]") {
  const int number = GENERATE(SIGKILL, SIGSTOP);
  CAPTURE(number);
  ClusterTasks tasks = start(words(2000, {"timeout=2000"}));
  REQUIRE(tasks.writes("chief", "done 20\n", patience));
  tasks.signal("ps 1", number);
  check_lost(tasks, "ps 1");
}

TEST_CASE("a lost coordinator ends all tasks with one line that names it", "[parameter_server]") {
  const int number = GENERATE(SIGKILL, SIGSTOP);
  CAPTURE(number);
  ClusterTasks tasks = start(words(2000, {"timeout=2000"}));
  REQUIRE(tasks.writes("chief", "done 20\n", patience));
  tasks.signal("chief", number);
  check_lost(tasks, "chief");
}

TEST_CASE("tasks that never connect are named", "[parameter_server]") {
  ClusterTasks tasks = start(words(20, {"connect_timeout=3000"}), {"ps 1"});
  const RankEnd& chief = tasks.end("chief", patience);
  CAPTURE(chief.err);
  CHECK(chief.exit_code == 3);
  CHECK(line_count(complaints(chief)) == 1);
  CHECK_THAT(complaints(chief), Contains("ps 1 (" + tasks.address("ps 1") + ")"));
  for (const char* task : {"worker 0", "worker 1", "ps 0"}) {
    CHECK(tasks.end(task, end_timeout).exit_code == 3);
  }
}

TEST_CASE("garbage on every port while closures run is refused without effect on the result",
          "[parameter_server]") {
  ClusterTasks tasks = start(words(250));
  REQUIRE(tasks.writes("chief", "done 5\n", patience));
  std::vector<int> ports;
  for (const char* task : {"worker 0", "worker 1", "ps 0", "ps 1"}) {
    ports.push_back(tasks.port(task));
  }
  Garbage garbage;
  while (garbage.connections() < 200) garbage.send_to(ports);
  CHECK(tasks.text("chief").find("done 250\n") == std::string::npos);
  check_counts(tasks, 250, "rescheduled 0 lost 0");
  check_ends_well(tasks);
}

TEST_CASE("workers killed and restarted at random moments", "[nightly][parameter_server]") {
  std::srand(7);
  for (int run = 0; run < 20; ++run) {
    CAPTURE(run);
    ClusterTasks tasks = start(words(300, {"pause=5"}));
    REQUIRE(tasks.writes("chief", "done 1\n", patience));
    for (int i = 0; i < 6; ++i) {
      std::this_thread::sleep_for(milliseconds(std::rand() % 700));
      const std::string worker = str("worker ", std::rand() % 2);
      tasks.kill(worker);
      std::this_thread::sleep_for(milliseconds(std::rand() % 100));
      tasks.restart(worker);
    }
    const RankEnd& end = tasks.end("chief", patience);
    CAPTURE(end.out, end.err);
    REQUIRE(end.exit_code == 0);
    for (int i = 0; i < 4; ++i) REQUIRE_THAT(end.out, Contains("count 300 300\n"));
  }
}

}  // namespace parameter_server_test
