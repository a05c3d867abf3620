#include "tests/cluster/launcher/launcher_run.hpp"

#include "tests/support/catch.hpp"

namespace launcher_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("the rank that fails first is named at the beginning and the end", "[launcher]") {
  const Run result =
      run("[ $RANK = 2 ] && exit 7; trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done",
          {.processes = 3, .grace = 100ms});
  CHECK(result.code == 7);
  CHECK(without_times(own_lines(result.err)) ==
        "launch: rank 2 failed: exit code 7\n"
        "launch: ranks 0 and 1 did not leave: SIGTERM\n"
        "launch: rank 2 failed first: exit code 7\n");
  CHECK(result.time < 5s);
}

TEST_CASE("ranks that exit by themselves get no signal", "[launcher]") {
  const Run result =
      run("[ $RANK = 1 ] && kill -9 $$; sleep 0.3; echo left >&2; exit 1", {.processes = 2});
  CHECK(result.code == 128 + 9);
  CHECK(without_times(result.err) ==
        "launch: rank 1 failed: killed by signal 9 (SIGKILL)\n"
        "[0] left\n"
        "launch: rank 1 failed first: killed by signal 9 (SIGKILL)\n");
}

TEST_CASE("a process that ignores SIGTERM is killed, also a stopped one", "[launcher]") {
  const Run result =
      run("[ $RANK = 0 ] && sleep 0.3 && exit 1; trap '' TERM; [ $RANK = 2 ] && kill -STOP $$;"
          "while :; do sleep 0.05; done",
          {.processes = 3, .grace = 100ms, .kill_after = 200ms});
  CHECK(result.code == 1);
  CHECK(result.err.find("ranks 1 and 2 did not leave: SIGKILL\n") != result.err.npos);
  CHECK(result.time < 5s);
}

TEST_CASE("a failure restarts all ranks with another port and job", "[launcher]") {
  const test::TempFolder folder;
  const std::string seen = (folder / "seen").string();
  const Run result = run("echo $TESSERA_JOB >> " + seen +
                             ".$RANK; echo start $TESSERA_RESTART;"
                             "[ \"$TESSERA_RESTART\" = 1 ] || [ $RANK = 0 ] || exit 5",
                         {.processes = 2, .max_restarts = 1});
  CHECK(result.code == 0);
  CHECK(without_times(result.err)
            .find("launch: rank 1 failed first: exit code 5\n"
                  "launch: restart 1 of 1\n") != result.err.npos);
  CHECK(sorted(result.out) == "[0] start\n[0] start 1\n[1] start\n[1] start 1\n");
  const std::string jobs = test::read_file(seen + ".0");
  CHECK(jobs == test::read_file(seen + ".1"));
  CHECK(jobs.substr(0, 16) != jobs.substr(17, 16));
}

TEST_CASE("the number of restarts is limited", "[launcher]") {
  const Run result = run("exit 4", {.processes = 1, .max_restarts = 2});
  CHECK(result.code == 4);
  CHECK(without_times(result.err) ==
        "launch: rank 0 failed first: exit code 4\nlaunch: restart 1 of 2\n"
        "launch: rank 0 failed first: exit code 4\nlaunch: restart 2 of 2\n"
        "launch: rank 0 failed first: exit code 4\n");
}

TEST_CASE("signals are forwarded once, and nothing is restarted", "[launcher]") {
  for (const auto& [signal, name] :
       {std::pair(SIGTERM, "TERM"), std::pair(SIGINT, "INT"), std::pair(SIGHUP, "HUP")}) {
    CAPTURE(name);
    Launcher launcher(
        str("trap 'echo caught; exit 1' ", name, "; echo ready; while :; do sleep 0.02; done"),
        {.processes = 2, .max_restarts = 3});
    launcher.wait_for_lines(2);
    kill(launcher.pid(), signal);
    const Run result = launcher.finish();
    CHECK(result.code == 128 + signal);
    CHECK(sorted(result.out) == "[0] caught\n[0] ready\n[1] caught\n[1] ready\n");
    CHECK(result.err.find("restart") == result.err.npos);
    CHECK(result.time < 5s);
  }
}

TEST_CASE("a second signal kills all processes", "[launcher]") {
  Launcher launcher("trap '' TERM; echo ready; while :; do sleep 0.02; done", {.processes = 2});
  launcher.wait_for_lines(2);
  kill(launcher.pid(), SIGTERM);
  std::this_thread::sleep_for(200ms);
  CHECK(is_alive(launcher.pid()));
  kill(launcher.pid(), SIGTERM);
  const Run result = launcher.finish();
  CHECK(result.code == 128 + SIGTERM);
  CHECK(result.time < 5s);
}

TEST_CASE("no process outlives the launcher", "[launcher]") {
  SECTION("if the run succeeds") {
    const Run result = run("sleep 100 & echo $!");
    CHECK(result.code == 0);
    CHECK(dies(std::stoi(result.out.substr(4))));
    CHECK(result.time < 5s);
  }
  SECTION("if the launcher is killed") {
    Launcher launcher("echo $$; exec sleep 100", {.processes = 2});
    launcher.wait_for_lines(2);
    const std::string out = launcher.out();
    kill(launcher.pid(), SIGKILL);
    CHECK(launcher.finish().code == 128 + SIGKILL);
    CHECK(dies(std::stoi(out.substr(4))));
    CHECK(dies(std::stoi(out.substr(out.find('\n') + 5))));
  }
}

TEST_CASE("a program that cannot be started gives a one-line error", "[launcher]") {
  CHECK_THROWS_WITH(launch({"/nowhere/at/all"}),
                    "[launch] the program can be run. Received: \"/nowhere/at/all\": No such file "
                    "or directory. To fix: name another program.");
}

}  // namespace launcher_test
