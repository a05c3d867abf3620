#include <tessera/framework/cluster/coordination/liveness_monitor.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace liveness_monitor_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using namespace std::chrono_literals;

namespace {

constexpr auto timeout = 10s;

CallRecord call(uint64_t number, bool done, uint64_t hash = 1) {
  return {number, hash, 7, str("all_reduce of w", hash, " on batch"), done};
}

/// A call of ranks 0 and 1 after one that all ranks have made; a transfer without a hash.
CallRecord call_of_two(uint64_t number, bool done, uint64_t hash) {
  return {number, hash, 7, str("call of two", hash), done, {0, 1}, 5, number};
}

/// A run of three ranks whose clock the test advances.
struct Run {
  Run() : now(LivenessMonitor::Time() + 100s), monitor(peers(), timeout, now) {}

  static std::vector<Peer> peers() {
    return {{0, 100, "a", ""}, {1, 101, "a", ""}, {2, 102, "b", ""}};
  }
  /// Advances the clock; all ranks send a heartbeat.
  void pass(std::chrono::milliseconds time) {
    now += time;
    for (int rank = 0; rank < 3; ++rank) monitor.note_alive(rank, now);
  }
  std::string gather(int rank) { return monitor.gather(rank, "key", "", now, complete); }
  std::string check(int rank, const CallRecord& which) {
    return monitor.check(rank, which, now, complete);
  }

  LivenessMonitor::Time now;
  LivenessMonitor monitor;
  std::optional<PendingGather> complete;
};

}  // namespace

TEST_CASE("a rank without heartbeats for too long is declared lost") {
  Run run;
  run.pass(1s);
  run.now += timeout;
  CHECK(run.monitor.check_deadlines(run.now) == "");
  run.monitor.note_alive(0, run.now);
  run.monitor.note_alive(2, run.now);
  CHECK_THAT(run.monitor.check_deadlines(run.now + 1ms),
             Contains("rank 1 (pid 101 on a) did not answer for 10 s: stopped or unreachable"));
  CHECK(run.monitor.reports()[1].state == "silent");
  // It is reported only once.
  CHECK(run.monitor.check_deadlines(run.now + 1ms) == "");
}

TEST_CASE("time in which rank 0 itself was stopped does not count") {
  Run run;
  CHECK(run.gather(1) == "");
  CHECK(run.monitor.on_heartbeat(0, call(1, false), run.now) == "");
  run.now += 5 * timeout;
  run.monitor.discount_pause(5 * timeout);
  CHECK(run.monitor.check_deadlines(run.now) == "");
  CHECK(run.monitor.check_deadlines(run.now + timeout + 1ms) != "");
}

TEST_CASE("a rank that does not join an exchange is named") {
  Run run;
  CHECK(run.gather(0) == "");
  CHECK(run.gather(2) == "");
  run.pass(timeout);
  CHECK(run.monitor.check_deadlines(run.now) == "");
  run.pass(1ms);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("rank 1 (pid 101 on a) did not come within 10 s while ranks 0 and 2 wait in "
                      "the exchange of \"key\""));
}

TEST_CASE("a rank that is stopped while others wait for it is reported as stopped, not late") {
  Run run;
  CHECK(run.gather(0) == "");
  run.pass(timeout - 2s);
  run.now += 2s + 1ms;
  run.monitor.note_alive(0, run.now);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("rank 1 (pid 101 on a) did not answer for 2 s: stopped or unreachable"));
}

TEST_CASE("a rank that does not join a check is named") {
  Run run;
  CHECK(run.check(1, call(5, false)) == "");
  run.pass(timeout + 1ms);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("rank 0 (pid 100 on a), rank 2 (pid 102 on b) did not come within 10 s while "
                      "rank 1 waits in call #5 (all_reduce of w1 on batch, step 8)"));
}

TEST_CASE("a rank that has not reached the others' call is named") {
  Run run;
  CHECK(run.monitor.on_heartbeat(0, call(5, false), run.now) == "");
  CHECK(run.monitor.on_heartbeat(1, call(4, true), run.now) == "");
  CHECK(run.monitor.on_heartbeat(2, call(5, false), run.now) == "");
  run.pass(timeout);
  CHECK(run.monitor.on_heartbeat(0, call(5, false), run.now) == "");
  CHECK(run.monitor.check_deadlines(run.now) == "");
  run.pass(1ms);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("rank 1 (pid 101 on a) did not come within 10 s while ranks 0 and 2 wait in "
                      "call #5"));
}

TEST_CASE("if several ranks are behind, the furthest one is named") {
  Run run;
  CHECK(run.monitor.on_heartbeat(0, call(5, false), run.now) == "");
  CHECK(run.monitor.on_heartbeat(1, call(4, false), run.now) == "");
  run.pass(timeout + 1ms);
  // Rank 2 never made a call.
  const std::string reason = run.monitor.check_deadlines(run.now);
  CHECK_THAT(reason, Contains("rank 2 (pid 102 on b) did not come") && !Contains("rank 1 (pid"));
}

TEST_CASE("ranks that make progress or wait for nothing are never late") {
  Run run;
  for (uint64_t number = 0; number < 10; ++number) {
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(run.monitor.on_heartbeat(rank, call(number, false), run.now) == "");
    }
    run.pass(timeout - 1s);
    CHECK(run.monitor.check_deadlines(run.now) == "");
  }
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(run.monitor.on_heartbeat(rank, call(9, true), run.now) == "");
  }
  run.pass(5 * timeout);
  CHECK(run.monitor.check_deadlines(run.now) == "");
}

TEST_CASE("a call in which all ranks are stuck ends the run") {
  Run run;
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(run.monitor.on_heartbeat(rank, call(9, false), run.now) == "");
  }
  run.pass(timeout + 1ms);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("ranks 0-2 wait in call #9") && Contains("no rank is behind"));
}

TEST_CASE("a stopped rank is named if all ranks are in the same call") {
  Run run;
  CHECK(run.monitor.on_heartbeat(0, call(4, false), run.now) == "");
  CHECK(run.monitor.on_heartbeat(1, call(4, true), run.now) == "");
  CHECK(run.monitor.on_heartbeat(2, call(4, false), run.now) == "");
  run.pass(timeout - 2s);
  // From here on rank 1 sends no heartbeats, for less than the timeout.
  run.now += 2s + 1ms;
  run.monitor.note_alive(0, run.now);
  run.monitor.note_alive(2, run.now);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("rank 1 (pid 101 on a) did not answer for 2 s: stopped or unreachable"));
}

TEST_CASE("heartbeats with differing calls of the same number end the run") {
  Run run;
  CHECK(run.monitor.on_heartbeat(2, call(5, false, 2), run.now) == "");
  CHECK(run.monitor.on_heartbeat(2, call(6, false, 2), run.now) == "");
  CHECK_THAT(run.monitor.on_heartbeat(0, call(5, false, 1), run.now),
             Contains("call #5 of rank 0 is all_reduce of w1 on batch, of rank 2 all_reduce of w2 "
                      "on batch"));
}

TEST_CASE("calls that differ only in their fingerprint are reported with it") {
  Run run;
  CHECK(run.check(0, {5, 16, -1, "same", false}) == "");
  CHECK_THAT(run.check(1, {5, 17, -1, "same", false}),
             Contains("rank 0 is same (fingerprint 0000000000000010), of rank 1 same (fingerprint "
                      "0000000000000011)"));
}

TEST_CASE("calls of some ranks are compared with each other only, and transfers not at all") {
  Run run;
  CHECK(run.monitor.on_heartbeat(2, call(5, true, 9), run.now) == "");
  CHECK(run.monitor.on_heartbeat(0, call_of_two(1, false, 0), run.now) == "");
  CHECK(run.monitor.on_heartbeat(1, call_of_two(1, false, 3), run.now) == "");
  CHECK(run.monitor.on_heartbeat(0, call_of_two(2, false, 4), run.now) == "");
  CHECK_THAT(run.monitor.on_heartbeat(1, call_of_two(2, false, 3), run.now),
             Contains("call #2 of rank 0 is call of two4, of rank 1 call of two3"));
}

TEST_CASE("a call of some ranks that does not end ends the run") {
  Run run;
  CHECK(run.monitor.on_heartbeat(0, call(6, false), run.now) == "");
  CHECK(run.monitor.on_heartbeat(2, call(6, false), run.now) == "");
  CHECK(run.monitor.on_heartbeat(1, call_of_two(1, false, 0), run.now) == "");
  run.pass(timeout);
  CHECK(run.monitor.check_deadlines(run.now) == "");
  run.pass(100ms);
  // Rank 0 waits for rank 1, which has made fewer calls of all ranks.
  CHECK_THAT(run.monitor.check_deadlines(run.now), Contains("rank 1"));
}

TEST_CASE("a rank that left is named if another waits for it in a call of both") {
  Run run;
  CHECK(run.monitor.on_heartbeat(0, call_of_two(1, false, 0), run.now) == "");
  CHECK(run.monitor.mark_left(2, call(5, true), run.now) == "");
  run.pass(6s);
  CHECK(run.monitor.check_deadlines(run.now) == "");
  CHECK(run.monitor.mark_left(1, call(5, true), run.now) == "");
  run.pass(6s);
  CHECK_THAT(run.monitor.check_deadlines(run.now),
             Contains("rank 1 (pid 101 on a) has left while rank 0 waits in call #1"));
}

TEST_CASE("a rank may leave if none waits for it") {
  Run run;
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(run.monitor.on_heartbeat(rank, call(5, false), run.now) == "");
  }
  CHECK(run.monitor.mark_left(1, call(5, true), run.now) == "");
  CHECK(run.monitor.on_heartbeat(0, call(5, true), run.now) == "");
  CHECK(run.monitor.on_heartbeat(2, call(5, true), run.now) == "");
  CHECK_FALSE(run.monitor.is_present(1));
  run.pass(5 * timeout);
  CHECK(run.monitor.check_deadlines(run.now) == "");
}

TEST_CASE("a rank that left is named as soon as another waits for it") {
  const std::string left = "rank 1 (pid 101 on a) has left while ";
  SECTION("in a later call") {
    Run run;
    run.monitor.set_note(1, "[fit] no more memory");
    CHECK(run.monitor.mark_left(1, call(5, true), run.now) == "");
    CHECK_THAT(
        run.monitor.on_heartbeat(0, call(6, false), run.now),
        Contains(left + "rank 0 waits in call #6") && Contains("; it said: [fit] no more memory"));
  }
  SECTION("in the call that it left") {
    Run run;
    CHECK(run.monitor.on_heartbeat(0, call(5, false), run.now) == "");
    CHECK_THAT(run.monitor.mark_left(1, call(5, false), run.now),
               Contains(left + "rank 0 waits in"));
  }
  SECTION("before its first call") {
    Run run;
    CHECK(run.monitor.on_heartbeat(2, call(0, false), run.now) == "");
    CHECK_THAT(run.monitor.mark_left(1, std::nullopt, run.now), Contains(left + "rank 2 waits in"));
  }
  SECTION("in a call that it failed in, after a few seconds") {
    Run run;
    run.monitor.set_note(1, "out of memory");
    CHECK(run.monitor.on_heartbeat(0, call(5, false), run.now) == "");
    CHECK(run.monitor.mark_left(1, call(5, true), run.now) == "");
    const auto deadline = [&](std::chrono::milliseconds later) {
      run.now += later;
      run.monitor.note_alive(0, run.now);
      run.monitor.note_alive(2, run.now);
      return run.monitor.check_deadlines(run.now);
    };
    CHECK(deadline(std::min<std::chrono::milliseconds>(timeout, 5s)) == "");
    CHECK_THAT(deadline(1ms),
               Contains(left + "rank 0 waits in call #5") && Contains("; it said: out of memory"));
  }
  SECTION("in an exchange that came before") {
    Run run;
    CHECK(run.gather(2) == "");
    CHECK_THAT(run.monitor.mark_left(1, std::nullopt, run.now),
               Contains(left + "rank 2 waits in the exchange of \"key\""));
  }
  SECTION("in an exchange that comes later") {
    Run run;
    CHECK(run.gather(1) == "");
    CHECK(run.monitor.mark_left(1, std::nullopt, run.now) == "");
    // Rank 1 contributed its text to this exchange before it left.
    CHECK(run.gather(0) == "");
    CHECK(run.gather(2) == "");
    REQUIRE(run.complete.has_value());
    CHECK_THAT(run.gather(2), Contains(left));
  }
  SECTION("in a check") {
    Run run;
    CHECK(run.monitor.mark_left(1, call(5, true), run.now) == "");
    CHECK_THAT(run.check(0, call(6, false)), Contains(left + "rank 0 waits in call #6"));
  }
}

TEST_CASE("texts of pending exchanges take bounded memory") {
  PendingGathers gathers(2);
  const std::string text(max_text_bytes, 'x');
  const auto add = [&](int rank, const std::string& key) {
    return gathers.add({text_key(key), key, false, {}, {}}, rank, text);
  };
  for (int i = 0; i < 3; ++i) CHECK_FALSE(add(0, str("key ", i)));
  CHECK_THROWS_AS(add(0, "key 3"), BadFrame);
  // Completed exchanges take no memory.
  PendingGathers completed(2);
  for (int i = 0; i < 6; ++i) {
    CHECK_FALSE(completed.add({"key", "key", false, {}, {}}, 0, text));
    CHECK(completed.add({"key", "key", false, {}, {}}, 1, ""));
  }
  CHECK(completed.oldest() == nullptr);
}

}  // namespace liveness_monitor_test
