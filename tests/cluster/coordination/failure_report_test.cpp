#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/coordination/coordination.hpp>

#include "tests/cluster/coordination/coordination_ranks.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace failure_report_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::RankProcess;

namespace {

CallRecord call(uint64_t number, bool done) {
  return {number, number, 7, "all_reduce of hidden/kernel on batch", done};
}

/// Starts processes of which rank `away` does nothing while the others wait for it.
std::vector<RankProcess> start_processes(int size, int away, std::chrono::milliseconds timeout) {
  const int port = free_port();
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < size; ++rank) {
    processes.emplace_back([=](const RankProcess::Tell& tell) {
      CoordinationOptions options = test::rank_options(rank, size, port);
      options.timeout = timeout;
      const auto coordination = Coordination::join(options);
      coordination->set_calls([=] {
        return std::vector<CallRecord>{call(117, true), call(118, rank == away)};
      });
      tell("joined");
      coordination->gather("first", "");
      if (rank == away) ::pause();
      coordination->gather("second", "");
    });
  }
  for (RankProcess& each : processes) REQUIRE(each.line() == "joined");
  // Waits until heartbeats have reported the calls.
  std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(timeout / 4, 600ms));
  return processes;
}

/// Returns the path of the report that a reason names.
std::string report_of(const std::string& reason) {
  const std::string mark = " Report: ";
  const size_t at = reason.find(mark);
  return at == std::string::npos ? "" : reason.substr(at + mark.size());
}

}  // namespace

TEST_CASE("a killed process is named on all other ranks at once") {
  const int victim = GENERATE(2, 0);
  auto processes = start_processes(4, victim, 60s);
  const int pid = processes[static_cast<size_t>(victim)].pid();
  const auto begin = steady_clock::now();
  processes[static_cast<size_t>(victim)].signal(SIGKILL);
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == victim) continue;
    const std::string reason = processes[static_cast<size_t>(rank)].line();
    CHECK_THAT(reason, Contains(str("Received: rank ", victim, " (pid ", pid, " on ")));
    CHECK_THAT(reason, Contains("was lost: killed or crashed"));
    CHECK_THAT(reason, Contains("in call #118 (all_reduce of hidden/kernel on batch, step 8)"));
    CHECK(processes[static_cast<size_t>(rank)].wait() == 1);
  }
  CHECK(steady_clock::now() - begin < 5s);
}

TEST_CASE("a stopped process is detected after the timeout") {
  const int victim = GENERATE(2, 0);
  auto processes = start_processes(3, victim, 1200ms);
  const int pid = processes[static_cast<size_t>(victim)].pid();
  const auto begin = steady_clock::now();
  processes[static_cast<size_t>(victim)].signal(SIGSTOP);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    const std::string reason = processes[static_cast<size_t>(rank)].line();
    CHECK_THAT(reason, Contains(str("Received: rank ", victim, " (pid ", pid, " on ")));
    CHECK_THAT(reason, Contains(" did not answer for ") && Contains(" s: stopped or unreachable"));
  }
  CHECK(steady_clock::now() - begin < 5s);
}

TEST_CASE("a run continues after all its processes were stopped") {
  const int port = free_port();
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < 3; ++rank) {
    processes.emplace_back([=](const RankProcess::Tell& tell) {
      CoordinationOptions options = test::rank_options(rank, 3, port);
      options.timeout = 800ms;
      const auto coordination = Coordination::join(options);
      tell("joined");
      std::this_thread::sleep_for(200ms);
      coordination->gather("key", "");
      tell("gathered");
    });
  }
  for (RankProcess& each : processes) REQUIRE(each.line() == "joined");
  for (const RankProcess& each : processes) each.signal(SIGSTOP);
  std::this_thread::sleep_for(1200ms);
  // The one that continues first finds that all others were silent.
  processes[GENERATE(size_t{0}, size_t{2})].signal(SIGCONT);
  std::this_thread::sleep_for(50ms);
  for (const RankProcess& each : processes) each.signal(SIGCONT);
  for (RankProcess& each : processes) CHECK(each.line() == "gathered");
  for (RankProcess& each : processes) CHECK(each.wait() == 0);
}

TEST_CASE("a process that dies while others join ends the start for all") {
  const int port = free_port();
  std::vector<RankProcess> processes;
  for (int rank = 0; rank < 3; ++rank) {
    processes.emplace_back(
        [=](const RankProcess::Tell&) { Coordination::join(test::rank_options(rank, 4, port)); });
  }
  std::this_thread::sleep_for(500ms);
  const int pid = processes[1].pid();
  processes[1].signal(SIGKILL);
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    CHECK_THAT(
        processes[rank].line(),
        Contains(str("[coordination] every rank waits until all have joined. Received: rank 1 "
                     "(pid ",
                     pid, " on ")) &&
            Contains("was lost"));
  }
}

TEST_CASE("a rank that leaves while others wait ends the run with its error") {
  auto ranks = test::join_all(3);
  const auto errors = test::on_threads(3, [&](int rank) {
    auto& coordination = ranks[static_cast<size_t>(rank)];
    if (rank != 1) coordination->gather("key", "");
    coordination->report_failure("[fit] no more memory");
    coordination->leave();
  });
  CHECK(errors[1] == "");
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    CHECK_THAT(errors[rank],
               Contains("rank 1 (pid ") && Contains(" has left while ") &&
                   Contains("the exchange of \"key\"; it said: [fit] no more memory"));
  }
  test::leave_all(ranks);
}

TEST_CASE("a rank that does not join a collective is detected after the timeout") {
  auto ranks = test::join_all(3, 400ms);
  const auto begin = steady_clock::now();
  const auto errors = test::on_threads(3, [&](int rank) {
    if (rank != 1) ranks[static_cast<size_t>(rank)]->check(call(118, false));
  });
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    CHECK_THAT(errors[rank], Contains("rank 1 (pid ") && Contains(" did not come within ") &&
                                 Contains(" s while ranks 0 and 2 wait in call #118"));
  }
  CHECK(steady_clock::now() - begin < 5s);
  CHECK(ranks[1]->reason(20s) == errors[0]);
  test::leave_all(ranks);
}

TEST_CASE("a rank may leave before the others") {
  auto ranks = test::join_all(3);
  ranks[2]->leave();
  CHECK(ranks[0]->reason(50ms) == "");
  ranks[1]->leave();
  CHECK_THROWS_WITH(ranks[1]->gather("key", ""), Contains("leave"));
  ranks[0]->leave();
  for (const auto& each : ranks) CHECK(each->reason() == "");
}

TEST_CASE("rank 0 waits until all have left") {
  auto ranks = test::join_all(2);
  std::atomic<bool> left = false;
  std::thread other([&] {
    std::this_thread::sleep_for(100ms);
    left = true;
    ranks[1]->leave();
  });
  ranks[0]->leave();
  CHECK(left);
  other.join();
}

TEST_CASE("the report lists the last calls of every rank") {
  auto ranks = test::join_all(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    ranks[rank]->set_calls([rank] {
      return std::vector<CallRecord>{call(117, true), call(rank == 1 ? 118 : 119, false)};
    });
  }
  ranks[2]->report_failure("a note");
  ranks[0]->abort("[test] the reason.");
  const std::string reason = ranks[1]->reason(20s);
  CHECK_THAT(reason,
             Contains("[test] the reason. Last calls: rank 1 is in call #118 (all_reduce of "
                      "hidden/kernel on batch, step 8); ranks 0 and 2 are in call #119 ("));
  const Json report = read_json_file(report_of(reason));
  CHECK(report.at("format") == "tessera failure report");
  CHECK_THAT(report.at("reason").get<std::string>(), Contains("[test] the reason."));
  REQUIRE(report.at("ranks").size() == 3);
  const Json& one = report.at("ranks").at(1);
  CHECK(one.at("pid") == ::getpid());
  CHECK(one.at("state") == "there");
  REQUIRE(one.at("calls").size() == 2);
  CHECK(one.at("calls").at(0).at("done") == true);
  CHECK(one.at("calls").at(1).at("number") == 118);
  CHECK(one.at("calls").at(1).at("fingerprint") == "0000000000000076");
  CHECK(report.at("ranks").at(2).at("note") == "a note");
  test::leave_all(ranks);
}

TEST_CASE("a rank whose service thread fails ends with the reason, and the others notice") {
  auto ranks = test::join_all(2);
  ranks[1]->set_calls([]() -> std::vector<CallRecord> { throw 3; });
  CHECK_THAT(ranks[1]->reason(20s), Contains("[coordination] rank 1 can serve its connection. "
                                             "Received: an exception of unknown type."));
  CHECK_THAT(ranks[0]->reason(20s), Contains("rank 1"));
  test::leave_all(ranks);
}

TEST_CASE("writing the report follows no planted link") {
  auto ranks = test::join_all(1);
  ranks[0]->set_calls([] { return std::vector<CallRecord>{call(118, false)}; });
  const std::filesystem::path folder = std::getenv("TESSERA_REPORT_DIR");
  const std::filesystem::path victim = folder / "victim";
  const std::filesystem::path report = folder / str("tessera-run-", ::getpid(), ".json");
  test::write_file(victim.string(), "precious");
  std::filesystem::remove(report);
  std::filesystem::create_symlink(victim, report);
  ranks[0]->abort("[test] the reason.");
  CHECK(report_of(ranks[0]->reason(20s)) == report.string());
  CHECK(test::read_file(victim.string()) == "precious");
  CHECK(read_json_file(report.string()).at("format") == "tessera failure report");
  test::leave_all(ranks);
}

TEST_CASE("an end callback that is set after the end is called once") {
  auto ranks = test::join_all(2);
  ranks[1]->abort("[test] over");
  REQUIRE(ranks[0]->reason(20s) == "[test] over");
  REQUIRE(ranks[1]->reason(20s) == "[test] over");
  std::atomic<int> count = 0;
  ranks[0]->set_on_end([&](const std::string& reason) {
    if (reason == "[test] over") ++count;
  });
  CHECK_THROWS_WITH(ranks[0]->gather("key", ""), "[test] over");
  CHECK_THROWS_WITH(ranks[1]->check(call(1, false)), "[test] over");
  ranks[1]->abort("[test] again");
  while (count == 0) std::this_thread::sleep_for(1ms);
  test::leave_all(ranks);
  CHECK(count == 1);
}

}  // namespace failure_report_test
