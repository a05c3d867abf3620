#include <tessera/framework/cluster/membership/member_register.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"

namespace member_register_test {

using namespace tessera;
using namespace tessera::detail;
using namespace std::chrono_literals;

using Time = MemberRegister::Time;

MembershipRules rules_of(int min, int expected, int max) {
  MembershipRules rules;
  rules.min_processes = min;
  rules.expected = expected;
  rules.max_processes = max;
  return rules;
}

Member member(const std::string& id) { return {id, "host1", 100, "127.0.0.1", 4000}; }

std::vector<std::string> ids(const Membership& membership) {
  std::vector<std::string> all;
  for (const Member& each : membership.members) all.push_back(each.id);
  return all;
}

using Ids = std::vector<std::string>;

/// A register with a clock that the test moves.
struct Clocked {
  explicit Clocked(const MembershipRules& rules) : members(rules, now) {}

  /// Lets time pass in small steps in which all that are there are heard, apart from `silent`.
  void pass(std::chrono::milliseconds time, const std::set<std::string>& silent = {}) {
    for (const Time end = now + time; now < end;) {
      now += 50ms;
      for (const std::string& id : joined) {
        if (!silent.contains(id)) members.hear(id, now);
      }
      members.tick(now);
    }
  }
  void join(const std::string& id) {
    REQUIRE(members.join(member(id), now).empty());
    joined.push_back(id);
  }
  const Membership& seen() const { return members.membership(); }

  Time now{};
  MemberRegister members;
  Ids joined;
};

TEST_CASE("the first generation waits for the expected processes, or long enough") {
  Clocked clocked(rules_of(2, 3, 4));
  clocked.join("a");
  clocked.join("b");
  clocked.pass(1min);
  CHECK(clocked.seen().phase == MembershipPhase::forming);
  SECTION("until the last comes") {
    clocked.join("c");
    clocked.pass(200ms);
    CHECK(clocked.seen().generation == 1);
    CHECK(ids(clocked.seen()) == Ids{"a", "b", "c"});
  }
  SECTION("with fewer once the time is over") {
    clocked.pass(4min + 1s);
    CHECK(clocked.seen().phase == MembershipPhase::running);
    CHECK(ids(clocked.seen()) == Ids{"a", "b"});
  }
  SECTION("and fails with too few") {
    clocked.members.lose("b", "killed", clocked.now);
    clocked.pass(4min + 1s);
    CHECK(clocked.seen().phase == MembershipPhase::failed);
    CHECK(clocked.seen().reason ==
          "[elastic] the run needs at least 2 processes. Received: 1 process. To fix: start more "
          "processes, or allow fewer (min_processes).");
  }
}

TEST_CASE("a loss makes a generation of the others in their order, also of the first") {
  for (const std::string gone : {"a", "b", "d"}) {
    CAPTURE(gone);
    Clocked clocked(rules_of(2, 4, 4));
    for (const char* id : {"a", "b", "c", "d"}) clocked.join(id);
    clocked.pass(200ms);
    clocked.members.lose(gone, "killed by signal 9 (SIGKILL)", clocked.now);
    clocked.pass(200ms);
    Ids left = {"a", "b", "c", "d"};
    left.erase(std::find(left.begin(), left.end(), gone));
    CHECK(clocked.seen().generation == 2);
    CHECK(ids(clocked.seen()) == left);
    REQUIRE(clocked.seen().departures.size() == 1);
    CHECK(clocked.seen().departures[0].generation == 2);
    CHECK(clocked.seen().departures[0].reason == "killed by signal 9 (SIGKILL)");
    clocked.join("e");
    clocked.pass(200ms);
    left.emplace_back("e");
    CHECK(clocked.seen().generation == 3);
    CHECK(ids(clocked.seen()) == left);
  }
}

TEST_CASE("changes at about the same time make one generation") {
  Clocked clocked(rules_of(1, 4, 4));
  for (const char* id : {"a", "b", "c", "d"}) clocked.join(id);
  clocked.pass(200ms);
  clocked.members.lose("a", "killed", clocked.now);
  clocked.members.leave("b", clocked.now);
  clocked.pass(50ms);
  clocked.join("e");
  clocked.pass(200ms);
  CHECK(clocked.seen().generation == 2);
  CHECK(ids(clocked.seen()) == Ids{"c", "d", "e"});
}

TEST_CASE("a leaver stays until the next generation, and its end then changes nothing") {
  Clocked clocked(rules_of(1, 2, 2));
  clocked.join("a");
  clocked.join("b");
  clocked.pass(200ms);
  clocked.members.leave("a", clocked.now);
  clocked.pass(500ms);
  CHECK(ids(clocked.seen()) == Ids{"b"});
  CHECK(clocked.members.is_present("a"));
  CHECK(clocked.seen().departures[0].reason.empty());
  const Membership before = clocked.seen();
  clocked.members.lose("a", "its connection closed", clocked.now);
  clocked.members.leave("a", clocked.now);
  clocked.pass(500ms);
  CHECK(clocked.seen() == before);
}

TEST_CASE("a silent member is expelled, and may come back under a new id only") {
  Clocked clocked(rules_of(1, 2, 2));
  clocked.join("a");
  clocked.join("b");
  clocked.pass(200ms);
  clocked.pass(9800ms, {"a"});
  CHECK(clocked.seen().generation == 1);
  clocked.pass(500ms, {"a"});
  CHECK(ids(clocked.seen()) == Ids{"b"});
  const std::vector<Departure> removed = clocked.members.take_removed();
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].member.id == "a");
  CHECK(removed[0].reason == "silent for 10.0 s: stopped, without processor time, or cut off");
  CHECK(clocked.members.take_removed().empty());
  CHECK(clocked.members.join(member("a"), clocked.now).find("of its own each time") !=
        std::string::npos);
  clocked.join("a2");
  clocked.pass(200ms);
  CHECK(ids(clocked.seen()) == Ids{"b", "a2"});
}

TEST_CASE("time in which the register itself did not run counts against nobody") {
  Clocked clocked(rules_of(1, 2, 2));
  clocked.join("a");
  clocked.join("b");
  clocked.pass(200ms);
  clocked.now += 60s;
  clocked.members.discount_pause(60s);
  clocked.pass(1s);
  CHECK(ids(clocked.seen()) == Ids{"a", "b"});
}

TEST_CASE("reports count for the newest generation and among its members only") {
  Clocked clocked(rules_of(1, 3, 3));
  for (const char* id : {"a", "b", "c", "spare"}) clocked.join(id);
  clocked.pass(200ms);
  MemberRegister& members = clocked.members;
  CHECK_FALSE(members.report_lost("a", 0, "b", "lost", clocked.now));
  CHECK_FALSE(members.report_lost("a", 2, "b", "lost", clocked.now));
  CHECK_FALSE(members.report_lost("a", 1, "a", "lost", clocked.now));
  CHECK_FALSE(members.report_lost("a", 1, "spare", "lost", clocked.now));
  CHECK_FALSE(members.report_lost("spare", 1, "a", "lost", clocked.now));
  CHECK(members.report_lost("a", 1, "b", "connection reset", clocked.now));
  CHECK_FALSE(members.report_lost("c", 1, "b", "repeated", clocked.now));
  clocked.pass(200ms);
  CHECK(ids(clocked.seen()) == Ids{"a", "c", "spare"});
  CHECK_FALSE(members.report_lost("a", 1, "c", "late", clocked.now));
  CHECK(members.take_removed().size() == 1);
}

TEST_CASE("with too few members the run waits, goes on with newcomers, or fails with the reason") {
  Clocked clocked(rules_of(2, 2, 2));
  clocked.join("a");
  clocked.join("b");
  clocked.pass(200ms);
  clocked.members.lose("b", "killed by signal 9 (SIGKILL)", clocked.now);
  clocked.pass(200ms);
  CHECK(clocked.seen().phase == MembershipPhase::waiting);
  CHECK(clocked.seen().generation == 1);
  CHECK(clocked.seen().reason.find("at least 2 processes. Received: 1 process; pid 100 on host1: "
                                   "killed by signal 9 (SIGKILL). To fix: start processes") !=
        std::string::npos);
  SECTION("tells who else leaves") {
    CHECK(clocked.seen().is_member("a"));
    clocked.members.leave("a", clocked.now);
    clocked.pass(200ms);
    CHECK(clocked.seen().phase == MembershipPhase::waiting);
    CHECK_FALSE(clocked.seen().is_member("a"));
    CHECK(clocked.seen().reason.find("Received: 0 processes; pid 100 on host1: left.") !=
          std::string::npos);
  }
  SECTION("goes on") {
    clocked.pass(20s);
    clocked.join("c");
    clocked.pass(200ms);
    CHECK(clocked.seen().phase == MembershipPhase::running);
    CHECK(ids(clocked.seen()) == Ids{"a", "c"});
    CHECK(clocked.seen().reason.empty());
  }
  SECTION("fails") {
    clocked.pass(31s);
    CHECK(clocked.seen().phase == MembershipPhase::failed);
    const Membership last = clocked.seen();
    clocked.join("c");
    clocked.pass(5s);
    CHECK(clocked.seen() == last);
  }
}

TEST_CASE("a run is complete when a member of the newest generation says so") {
  Clocked clocked(rules_of(1, 2, 2));
  clocked.join("a");
  clocked.join("b");
  clocked.join("spare");
  clocked.pass(200ms);
  CHECK_FALSE(clocked.members.finish("a", 0));
  CHECK_FALSE(clocked.members.finish("spare", 1));
  CHECK(clocked.members.finish("a", 1));
  CHECK_FALSE(clocked.members.finish("b", 1));
  CHECK(clocked.seen().phase == MembershipPhase::finished);
  clocked.members.lose("a", "gone", clocked.now);
  clocked.pass(1s);
  CHECK(clocked.seen().generation == 1);
}

TEST_CASE("memberships survive JSON, and other JSON is refused") {
  Clocked clocked(rules_of(1, 3, 3));
  for (const char* id : {"a", "b", "c"}) clocked.join(id);
  clocked.pass(200ms);
  clocked.members.lose("b", "says \"no\"\n", clocked.now);
  clocked.pass(200ms);
  const Json json = to_json(clocked.seen());
  CHECK(membership_from(parse_json(to_json_text(json), "test"), JsonPath("test")) ==
        clocked.seen());
  for (const char* key : {"revision", "members", "phase", "departures"}) {
    CAPTURE(key);
    Json broken = json;
    broken.erase(key);
    CHECK_THROWS_AS(membership_from(broken, JsonPath("test")), ConfigError);
    broken[key] = "nonsense";
    CHECK_THROWS_AS(membership_from(broken, JsonPath("test")), ConfigError);
  }
}

/// A message on its way to the register. Some come late, some twice.
struct Message {
  enum class Kind { join, hear, leave, lost, finish } kind;
  std::string from;
  std::string about;
  uint64_t generation = 0;
};

/// One random run, with what has to hold at all times.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {
    rules_.min_processes = pick(1, 3);
    rules_.expected = rules_.min_processes + pick(0, 2);
    rules_.max_processes = rules_.expected + pick(0, 2);
    rules_.timeout = 2s;
    rules_.settle_time = std::chrono::milliseconds(pick(0, 3) * 50);
    rules_.waiting_time = std::chrono::seconds(pick(0, 4));
    rules_.forming_time = 5s;
    members_ = std::make_unique<MemberRegister>(rules_, now_);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += std::chrono::milliseconds(pick(1, 200));
      act();
      deliver();
      members_->tick(now_);
      for (const Departure& each : members_->take_removed()) gone_.insert(each.member.id);
      check();
    }
  }
  uint64_t generations() const { return last_.generation; }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  std::string any(const Ids& list) {
    return list.empty() ? "nobody"
                        : list[static_cast<size_t>(pick(0, static_cast<int>(list.size()) - 1))];
  }

  void act() {
    const int what = pick(0, 19);
    if (what < 3 && processes_.size() < 8) {
      processes_.push_back("p" + std::to_string(++count_));
      post({Message::Kind::join, processes_.back(), ""});
    } else if (what == 3) {
      post({Message::Kind::leave, any(processes_), ""});
    } else if (what == 4) {
      // A report about any generation, among any two of those that ever were.
      post({Message::Kind::lost, any(processes_), "p" + std::to_string(pick(1, count_ + 1)),
            last_.generation -
                std::min<uint64_t>(last_.generation, static_cast<uint64_t>(pick(0, 2)))});
    } else if (what == 5) {
      const std::string dead = any(processes_);
      members_->lose(dead, "killed", now_);
      gone_.insert(dead);
      std::erase(processes_, dead);
    } else if (what == 6 && pick(0, 60) == 0) {
      post({Message::Kind::finish, any(processes_), "", last_.generation});
    }
    for (const std::string& each : processes_) {
      if (pick(0, 9) < 8) post({Message::Kind::hear, each, ""});
    }
  }

  void post(const Message& message) {
    waiting_.push_back(message);
    if (pick(0, 9) == 0) waiting_.push_back(message);
  }

  void deliver() {
    std::vector<Message> later;
    for (const Message& each : waiting_) {
      if (pick(0, 9) < 3) {
        later.push_back(each);
        continue;
      }
      switch (each.kind) {
        case Message::Kind::join:
          if (!gone_.contains(each.from)) members_->join(member(each.from), now_);
          break;
        case Message::Kind::hear:
          members_->hear(each.from, now_);
          break;
        case Message::Kind::leave:
          if (members_->is_present(each.from)) left_.insert(each.from);
          members_->leave(each.from, now_);
          break;
        case Message::Kind::lost: {
          const bool counts =
              members_->report_lost(each.from, each.generation, each.about, "reported", now_);
          // Nothing of an earlier generation is accepted.
          if (counts) CHECK(each.generation == members_->membership().generation);
          break;
        }
        case Message::Kind::finish:
          if (members_->finish(each.from, each.generation)) {
            CHECK(each.generation == members_->membership().generation);
          }
          break;
      }
    }
    waiting_ = std::move(later);
  }

  void check() {
    const Membership& seen = members_->membership();
    CHECK(seen.revision >= last_.revision);
    CHECK(seen.generation >= last_.generation);
    CHECK(seen.generation <= last_.generation + 1);
    if (seen.revision == last_.revision) CHECK(seen == last_);
    // What is over stays so.
    if (last_.is_over()) CHECK(seen == last_);
    CHECK(seen.departures.size() <= max_departures);
    const auto [list, is_new] = lists_.try_emplace(seen.generation, ids(seen));
    // Each generation has one list, exactly once.
    CHECK(list->second == ids(seen));
    if (is_new && seen.generation > 0) check_new(seen);
    last_ = seen;
  }

  void check_new(const Membership& seen) {
    const auto size = static_cast<int>(seen.members.size());
    CHECK(seen.phase == MembershipPhase::running);
    CHECK(size >= rules_.min_processes);
    CHECK(size <= rules_.max_processes);
    Ids sorted = ids(seen);
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    CHECK(ids(seen) != ids(last_));
    for (const Member& each : seen.members) {
      CAPTURE(each.id);
      CHECK_FALSE(gone_.contains(each.id));
      CHECK_FALSE(left_.contains(each.id));
    }
    // Those that stay keep their order, before newcomers.
    int before = -1;
    bool newcomers = false;
    for (const Member& each : seen.members) {
      const int rank = last_.rank_of(each.id);
      if (rank < 0) newcomers = true;
      if (rank >= 0) CHECK((rank > before && !newcomers));
      if (rank >= 0) before = rank;
    }
    // Every member that is gone has a reason that everybody reads.
    for (const Member& each : last_.members) {
      if (seen.rank_of(each.id) >= 0) continue;
      const auto told = std::count_if(
          seen.departures.begin(), seen.departures.end(), [&](const Departure& departure) {
            return departure.member.id == each.id && departure.generation == seen.generation;
          });
      CHECK(told == 1);
    }
  }

  std::mt19937_64 random_;
  MembershipRules rules_;
  Time now_{};
  std::unique_ptr<MemberRegister> members_;
  Ids processes_;
  int count_ = 0;
  std::vector<Message> waiting_;
  std::set<std::string> gone_, left_;
  std::map<uint64_t, Ids> lists_;
  Membership last_;
};

TEST_CASE("thousands of random runs keep what the register promises") {
  uint64_t generations = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    RandomRun run(seed);
    run.run(60);
    generations += run.generations();
  }
  // The runs are not trivial.
  CHECK(generations > 6000);
}

}  // namespace member_register_test
