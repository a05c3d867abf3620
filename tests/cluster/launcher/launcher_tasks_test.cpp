#include <fstream>
#include <set>

#include <tessera/framework/cluster/cluster.hpp>

#include "tests/cluster/launcher/launcher_run.hpp"
#include "tests/support/catch.hpp"

namespace launcher_tasks_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// Returns a script in which T is "chief0", "worker1", "ps0" or "evaluator0", S the number of
/// restarts, and D a folder of the run.
std::string script(const TempFolder& folder, const std::string& text) {
  return str("T=$(echo \"$TF_CONFIG\" | sed 's/.*\"task\":{\"type\":\"\\([a-z]*\\)\",\"index\":",
             "\\([0-9]*\\)}.*/\\1\\2/'); S=${TESSERA_RESTART:-0}; D=", folder.path().string(),
             "; n=0; wait_for() { until [ -e $D/$1 ]; do n=$((n+1)); [ $n -lt 1000 ] || exit 9;",
             "sleep 0.02; done; }; serve() { trap 'exit 0' TERM; wait_for done; exit 0; };", text);
}

LaunchOptions job(int max_restarts = 0) {
  return {.processes = 2,
          .servers = 2,
          .max_restarts = max_restarts,
          .grace = 200ms,
          .kill_after = 300ms};
}

bool has(const std::string& text, const std::string& piece) {
  return text.find(piece) != text.npos;
}

}  // namespace

TEST_CASE("every task of a parameter server job finds itself in TF_CONFIG", "[launcher]") {
  const TempFolder folder;
  LaunchOptions options = job();
  options.evaluator = true;
  const Run result = run(script(folder,
                                "echo $TF_CONFIG; echo $TESSERA_JOB >> $D/jobs;"
                                "echo $TESSERA_SECRET >> $D/secrets;"
                                "[ -z \"$RANK$WORLD_SIZE$MASTER_ADDR$TESSERA_RESTART\" ] "
                                "&& [ $OMP_NUM_THREADS -ge 1 ]"),
                         options);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  std::istringstream lines(result.out);
  std::set<std::string> labels;
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find("] ");
    REQUIRE(end != line.npos);
    const std::string config = line.substr(end + 2);
    const Cluster cluster = find_cluster({}, [&](const char* name) {
      return std::string(name) == "TF_CONFIG" ? config.c_str() : nullptr;
    });
    const std::string type = to_string(cluster.type);
    const int index = cluster.type == TaskType::worker ? cluster.rank - 1 : cluster.rank;
    const bool single = cluster.type == TaskType::chief || cluster.type == TaskType::evaluator;
    CHECK(line.substr(1, end - 1) == (single ? type : str(type, " ", index)));
    labels.insert(line.substr(1, end - 1));
    REQUIRE(cluster.tasks.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      CHECK(cluster.tasks[i].second.size() == (i == 1 || i == 2 ? 2 : 1));
    }
  }
  CHECK(labels ==
        std::set<std::string>{"chief", "worker 0", "worker 1", "ps 0", "ps 1", "evaluator"});
  const std::string secrets = read_file(folder / "secrets");
  CHECK(secrets.size() == 6 * 65);
  for (size_t at = 0; at < secrets.size(); at += 65) {
    CHECK(secrets.substr(at, 65) == secrets.substr(0, 65));
  }
  const std::string jobs = read_file(folder / "jobs");
  CHECK(jobs.size() == 6 * 17);
  for (size_t at = 0; at < jobs.size(); at += 17) CHECK(jobs.substr(at, 17) == jobs.substr(0, 17));
}

TEST_CASE("ranks find each other by TF_CONFIG", "[launcher]") {
  const TempFolder folder;
  const Run result = run(script(folder, "echo $T $RANK$MASTER_PORT; [ $T = worker0 ] || exit 5"),
                         {.processes = 2, .tf_config = true});
  CHECK(result.code == 5);
  CHECK(sorted(result.out) == "[0] worker0\n[1] worker1\n");
  CHECK(has(result.err, "launch: rank 1 failed first: exit code 5, after "));
}

TEST_CASE("a failed worker is restarted alone", "[launcher]") {
  const TempFolder folder;
  const Run result =
      run(script(folder,
                 "echo start $S; case $T$S in worker10) kill -9 $$;; worker11) exit 7;;"
                 "worker12) touch $D/back; serve;; chief00) wait_for back; touch $D/done;;"
                 "*) serve;; esac"),
          job(2));
  CHECK(result.code == 0);
  CHECK(without_times(own_lines(result.err)) ==
        "launch: worker 1 failed: killed by signal 9 (SIGKILL); restart 1 of 2\n"
        "launch: worker 1 failed: exit code 7; restart 2 of 2\n");
  CHECK(sorted(result.out) ==
        "[chief] start 0\n[ps 0] start 0\n[ps 1] start 0\n[worker 0] start 0\n"
        "[worker 1] start 0\n[worker 1] start 1\n[worker 1] start 2\n");
}

TEST_CASE("the job continues without a worker or the evaluator, but not without all workers",
          "[launcher]") {
  const TempFolder folder;
  LaunchOptions options = job();
  options.evaluator = true;
  SECTION("one worker is left") {
    const Run result = run(script(folder,
                                  "case $T in worker1) exit 4;; evaluator0) exit 5;;"
                                  "chief0) sleep 0.5; touch $D/done;; *) serve;; esac"),
                           options);
    CHECK(result.code == 0);
    CHECK(sorted(without_times(own_lines(result.err))) ==
          "launch: evaluator failed: exit code 5; the job goes on without it\n"
          "launch: worker 1 failed: exit code 4; the job goes on without it\n");
  }
  SECTION("no worker is left") {
    const Run result = run(script(folder,
                                  "case $T in worker0) exit 4;; worker1) sleep 0.5; exit 6;;"
                                  "*) serve;; esac"),
                           options);
    CHECK(result.code == 6);
    CHECK(without_times(own_lines(result.err)) ==
          "launch: worker 0 failed: exit code 4; the job goes on without it\n"
          "launch: worker 1 failed: exit code 6\n"
          "launch: chief, ps 0 and ps 1 did not leave: SIGTERM\n"
          "launch: worker 1 failed first: exit code 6\n");
  }
}

TEST_CASE("losing a parameter server restarts all tasks", "[launcher]") {
  const TempFolder folder;
  LaunchOptions options = job(1);
  options.grace = 1s;
  const Run result =
      run(script(folder,
                 "echo start $S; case $T$S in ps10) wait_for ready; kill -9 $$;;"
                 "worker00) touch $D/ready; sleep 0.2; exit 3;; chief00) sleep 0.3; exit 3;;"
                 "chief01) touch $D/done;; *) serve;; esac"),
          options);
  CHECK(result.code == 0);
  CHECK(without_times(own_lines(result.err)) ==
        "launch: ps 1 failed: killed by signal 9 (SIGKILL)\n"
        "launch: worker 1 and ps 0 did not leave: SIGTERM\n"
        "launch: ps 1 failed first: killed by signal 9 (SIGKILL)\n"
        "launch: restart 1 of 1\n");
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 10);
  CHECK(has(result.out, "[ps 0] start 1\n"));
}

TEST_CASE("a task that failed because of another is not restarted while that one ends",
          "[launcher]") {
  const TempFolder folder;
  LaunchOptions options = job();
  options.grace = 2s;
  const Run result = run(script(folder,
                                "case $T in worker0) touch $D/$T; exit 3;;"
                                "ps1) wait_for worker0; sleep 0.5; exit 8;;"
                                "*) serve;; esac"),
                         options);
  CHECK(result.code == 8);
  CHECK(without_times(own_lines(result.err)) ==
        "launch: ps 1 failed: exit code 8\n"
        "launch: chief, worker 1 and ps 0 did not leave: SIGTERM\n"
        "launch: ps 1 failed first: exit code 8\n");
}

TEST_CASE("the job ends with its chief", "[launcher]") {
  const TempFolder folder;
  SECTION("other tasks may then fail or hang") {
    const Run result =
        run(script(folder,
                   "case $T in chief0) exit 0;; worker0) sleep 0.1; exit 3;;"
                   "ps1) trap '' TERM; while :; do sleep 0.02; done;; *) sleep 0.1;; esac"),
            job(3));
    CHECK(result.code == 0);
    CHECK(own_lines(result.err) ==
          "launch: ps 1 did not leave: SIGTERM\nlaunch: ps 1 did not leave: SIGKILL\n");
    CHECK(result.time < 5s);
  }
  SECTION("the chief's error is the job's") {
    LaunchOptions options = job();
    options.evaluator = true;
    options.grace = 20s;
    const Run result = run(script(folder,
                                  "case $T in chief0) sleep 0.5; exit 2;; evaluator0) serve;;"
                                  "*) sleep 0.7; exit 3;; esac"),
                           options);
    CHECK(result.code == 2);
    CHECK(without_times(own_lines(result.err)) ==
          "launch: chief failed: exit code 2\nlaunch: chief failed first: exit code 2\n");
    CHECK(result.time < 15s);
  }
}

TEST_CASE("a signal goes to the chief first, which needs its parameter servers", "[launcher]") {
  const TempFolder folder;
  LaunchOptions options = job(2);
  options.evaluator = true;
  options.grace = 20s;
  Launcher launcher(
      script(folder,
             "case $T in chief0) trap 'echo saved; touch $D/done; exit 143' TERM;;"
             "evaluator0) trap 'echo left; exit 143' TERM;; *) trap 'echo caught' TERM;;"
             "esac; echo ready; until [ -e $D/done ] && [ $T != evaluator0 ]; do "
             "sleep 0.02; done"),
      options);
  launcher.wait_for_lines(6);
  kill(launcher.pid(), SIGTERM);
  const Run result = launcher.finish();
  CHECK(result.code == 143);
  CHECK(has(result.out, "[chief] saved\n"));
  CHECK(has(result.out, "[evaluator] left\n"));
  CHECK_FALSE(has(result.out, "caught"));
  CHECK(own_lines(result.err) ==
        "launch: SIGTERM: waiting for the processes to leave; a second signal kills them\n");
  CHECK(result.time < 15s);
}

TEST_CASE("free ports are distinct and below the ephemeral range", "[launcher]") {
  const std::vector<int> ports = free_ports(100);
  CHECK(std::set<int>(ports.begin(), ports.end()).size() == 100);
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  if (first > 20000) CHECK(*std::max_element(ports.begin(), ports.end()) < first);
}

}  // namespace launcher_tasks_test
