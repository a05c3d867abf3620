#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/membership/membership_store.hpp>
#include <tessera/framework/cluster/membership/register_server.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

#include "tests/cluster/coordination/coordination_ranks.hpp"
#include "tests/support/catch.hpp"

namespace tessera::test {

using namespace std::chrono_literals;

inline constexpr const char* elastic_secret = "a secret that all of the members share";

inline MembershipRules elastic_rules(int min, int expected, int max) {
  MembershipRules rules;
  rules.min_processes = min;
  rules.expected = expected;
  rules.max_processes = max;
  rules.waiting_time = 1s;
  rules.timeout = 1s;
  return rules;
}

inline RegisterOptions register_options(const MembershipRules& rules) {
  RegisterOptions options;
  options.rules = rules;
  options.job = "job";
  options.access.secret = elastic_secret;
  return options;
}

inline MembershipOptions member_options(const std::string& where) {
  MembershipOptions options;
  options.where = where;
  options.job = "job";
  options.access.secret = elastic_secret;
  options.connect_timeout = 20s;
  options.say = [](const std::string&) {};
  return options;
}

/// Serves a register until `stop`.
inline void serve(RegisterServer& server, const std::function<bool()>& stop) {
  while (!stop()) {
    std::vector<pollfd> entries;
    server.add_to(entries);
    ::poll(entries.data(), entries.size(), std::min(20, poll_time(server.wake_time())));
    server.serve();
  }
}

/// Returns a membership as text: "generation 2 of 101, 103".
inline std::string members_text(const Membership& membership) {
  std::string text = str("generation ", membership.generation, " of");
  for (const Member& each : membership.members) text += str(" ", each.pid);
  return text;
}

/// Takes part in a run until it is over, or until a generation forms without this process after
/// SIGTERM. Tells each change, and joins again after it was expelled.
inline void take_part(const MembershipOptions& options, const RankProcess::Tell& tell) {
  const StopSignals signals;
  auto store = MembershipStore::join(options);
  uint64_t seen = 0;
  bool leaving = false;
  while (true) {
    const Membership now = store->wait_for_change(seen, 20ms);
    if (stop_signal() != 0 && !std::exchange(leaving, true)) store->leave();
    if (now.revision == seen) continue;
    seen = now.revision;
    const bool in = now.rank_of(store->self().id) >= 0;
    if (now.phase == MembershipPhase::running && in) tell(members_text(now));
    if (leaving && !now.is_member(store->self().id) && !now.is_over()) return tell("left");
    if (now.phase == MembershipPhase::waiting) tell("waits: " + now.reason);
    if (now.phase == MembershipPhase::failed) return tell("failed: " + now.reason);
    if (now.phase == MembershipPhase::finished) return tell("finished");
    if (now.phase != MembershipPhase::expelled) continue;
    tell("expelled: " + now.reason);
    store.reset();
    store = MembershipStore::join(options);
    seen = 0;
  }
}

/// Waits until a store has a membership that satisfies `is`; returns it.
inline Membership wait_until(MembershipStore& store,
                             const std::function<bool(const Membership&)>& is) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  Membership now = store.membership();
  while (!is(now)) {
    if (std::chrono::steady_clock::now() > end) {
      FAIL("no such membership; the last: " << to_json_text(
               now.phase == MembershipPhase::expelled ? Json(now.reason) : to_json(now)));
    }
    now = store.wait_for_change(now.revision, 100ms);
  }
  return now;
}

inline Membership wait_for_generation(MembershipStore& store, uint64_t generation) {
  return wait_until(store, [&](const Membership& now) {
    return now.generation >= generation && now.phase == MembershipPhase::running;
  });
}

inline Membership wait_for_phase(MembershipStore& store, MembershipPhase phase) {
  return wait_until(store, [&](const Membership& now) { return now.phase == phase; });
}

/// Returns the number of open descriptors or threads of this process: "fd" or "task".
inline ptrdiff_t count_own(const std::string& what) {
  return std::distance(std::filesystem::directory_iterator("/proc/self/" + what), {});
}

}  // namespace tessera::test
