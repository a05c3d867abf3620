#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <tessera/framework/cluster/internal/job_secret.hpp>

#include "tests/cluster/launcher/launcher_run.hpp"
#include "tests/cluster/membership/elastic_members.hpp"
#include "tests/support/catch.hpp"

namespace elastic_launch_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

/// The program that the launcher of these tests starts. TEST_FINISH: the number of members with
/// which a generation after the first completes the run.
TEST_CASE("a member of an elastic run", "[.member]") {
  const std::string where = register_address();
  REQUIRE_FALSE(where.empty());
  MembershipOptions options;
  options.where = where;
  options.job = std::getenv("TESSERA_JOB");
  options.access = job_access({});
  auto store = MembershipStore::join(options);
  const auto tell = [](const std::string& line) { std::cout << line << std::endl; };
  const StopSignals signals;
  uint64_t seen = 0;
  bool leaving = false;
  while (true) {
    const Membership now = store->wait_for_change(seen, 20ms);
    if (stop_signal() != 0 && !std::exchange(leaving, true)) store->leave();
    if (now.revision == seen) continue;
    seen = now.revision;
    if (leaving && !now.is_member(store->self().id)) ::_exit(0);
    if (now.phase == MembershipPhase::running) {
      tell(str("pid ", getpid(), " ", members_text(now)));
    }
    if (now.phase == MembershipPhase::waiting) tell("waits");
    if (now.phase == MembershipPhase::failed) tell("failed: " + now.reason), ::_exit(3);
    if (now.phase == MembershipPhase::finished) ::_exit(0);
    if (now.phase == MembershipPhase::expelled) tell("expelled"), ::_exit(3);
    const char* const finish = std::getenv("TEST_FINISH");
    if (finish != nullptr && now.phase == MembershipPhase::running && now.generation > 1 &&
        std::ssize(now.members) == std::atoi(finish)) {
      store->finish(now.generation);
    }
  }
}

std::string member_program() {
  return str("exec ", std::filesystem::read_symlink("/proc/self/exe").string(),
             " 'a member of an elastic run'");
}

LaunchOptions elastic(int min, int count, int max, int max_restarts) {
  LaunchOptions options;
  options.processes = count;
  options.min_processes = min;
  options.max_processes = max;
  options.max_restarts = max_restarts;
  options.grace = 2s;
  return options;
}

/// Returns the lines with a generation, without pid and prefix: "generation 1 of 11 12".
std::vector<std::string> generations_in(const std::string& out, uint64_t number) {
  std::istringstream in(out);
  std::vector<std::string> found;
  const std::string begin = str("generation ", number, " of");
  for (std::string line; std::getline(in, line);) {
    const size_t at = line.find(begin);
    if (at != line.npos) found.push_back(line.substr(at));
  }
  return found;
}

std::string wait_for_generation(const Launcher& launcher, uint64_t number, size_t count) {
  launcher.wait_for_lines(1);
  for (int i = 0; i < 1000; ++i) {
    const std::vector<std::string> found = generations_in(launcher.out(), number);
    if (found.size() >= count) {
      for (const std::string& each : found) CHECK(each == found[0]);
      return found[0];
    }
    std::this_thread::sleep_for(10ms);
  }
  FAIL("no generation " << number << ": " << launcher.out());
  return "";
}

int pid_at(const std::string& text, int rank) {
  std::istringstream in(text.substr(text.find(" of ") + 4));
  int pid = 0;
  for (int i = 0; i <= rank; ++i) in >> pid;
  return pid;
}

TEST_CASE("the launcher restarts a killed member as a newcomer, also the first", "[launcher]") {
  for (const int rank : {0, 2}) {
    CAPTURE(rank);
    setenv("TEST_FINISH", "3", 1);
    Launcher launcher(member_program(), elastic(2, 3, 3, 1));
    unsetenv("TEST_FINISH");
    const std::string first = wait_for_generation(launcher, 1, 3);
    const int killed = pid_at(first, rank);
    kill(killed, SIGKILL);
    const Run result = launcher.finish();
    CAPTURE(result.out);
    CHECK(result.code == 0);
    // The survivors stay, in their order; the newcomer is the last.
    const std::vector<std::string> second = generations_in(result.out, 2);
    REQUIRE(second.size() >= 2);
    const std::vector<std::string> third = generations_in(result.out, 3);
    // Some may hear that the run is complete before they have looked at the third.
    REQUIRE_FALSE(third.empty());
    CHECK(third[0].starts_with("generation 3 of" + second[0].substr(second[0].find(" of ") + 3)));
    CHECK(pid_at(second[0], 0) == pid_at(first, rank == 0 ? 1 : 0));
    CHECK(result.err.find("failed: killed by signal 9 (SIGKILL)") != result.err.npos);
    CHECK(result.err.find("; restart 1 of 1\n") != result.err.npos);
  }
}

TEST_CASE("without restarts a run goes on until too few members are left", "[launcher]") {
  Launcher launcher(member_program(), elastic(2, 3, 3, 0));
  const std::string first = wait_for_generation(launcher, 1, 3);
  kill(pid_at(first, 1), SIGKILL);
  wait_for_generation(launcher, 2, 2);
  kill(pid_at(first, 0), SIGKILL);
  const Run result = launcher.finish();
  CAPTURE(result.out, result.err);
  CHECK(result.code == 128 + SIGKILL);
  CHECK(result.out.find("failed: [elastic] the run needs at least 2 processes. Received: 1 left; "
                        "member ") != result.out.npos);
  CHECK(result.err.find("; the job goes on without it\n") != result.err.npos);
  CHECK(result.time < 10s);
}

TEST_CASE("members that all fail before they join end the run", "[launcher]") {
  const Run result = run("exit 7", elastic(2, 2, 2, 0));
  CAPTURE(result.err);
  CHECK(result.code == 7);
  CHECK(result.err.find("failed: exit code 7") != result.err.npos);
}

TEST_CASE("SIGTERM to the launcher ends an elastic run, and its death ends all members",
          "[launcher]") {
  Launcher launcher(member_program(), elastic(1, 2, 2, 5));
  const std::string first = wait_for_generation(launcher, 1, 2);
  SECTION("SIGTERM") {
    kill(launcher.pid(), SIGTERM);
    const Run result = launcher.finish();
    CHECK(result.code == 128 + SIGTERM);
    CHECK(result.err.find("restart") == result.err.npos);
    CHECK(result.err.find("did not leave") == result.err.npos);
    CHECK(result.time < 10s);
  }
  SECTION("SIGKILL") {
    kill(launcher.pid(), SIGKILL);
    CHECK(launcher.finish().code == 128 + SIGKILL);
  }
  CHECK(dies(pid_at(first, 0)));
  CHECK(dies(pid_at(first, 1)));
}

TEST_CASE("members have a slot and a register in their environment, and no rank", "[launcher]") {
  const Run result =
      run("echo $LOCAL_RANK of $LOCAL_WORLD_SIZE rank $RANK $WORLD_SIZE "
          "${TESSERA_MEMBERS%:*} $MASTER_ADDR",
          elastic(1, 2, 4, 0));
  CHECK(result.code == 0);
  CHECK(sorted(result.out) == "[0] 0 of 2 rank 127.0.0.1\n[1] 1 of 2 rank 127.0.0.1\n");
}

TEST_CASE("a program that does not join the register does not train alone", "[launcher]") {
  const auto lookup = [](const char* name) {
    return std::string(name) == "TESSERA_MEMBERS" ? "127.0.0.1:4000" : nullptr;
  };
  CHECK_THROWS_WITH(find_cluster({}, lookup), Catch::Contains("[TESSERA_MEMBERS]"));
  CHECK(register_address(lookup) == "127.0.0.1:4000");
}

}  // namespace elastic_launch_test
