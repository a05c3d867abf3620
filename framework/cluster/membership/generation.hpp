#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// A process of an elastic run. Its id is new each time it joins, so that a late message about an
/// earlier stay concerns nobody.
struct Member {
  std::string id;
  std::string host;
  int64_t pid = 0;
  /// IP address and port at which it listens if it is the first of a generation
  std::string address;
  int port = 0;
  bool operator==(const Member&) const = default;
  /// Returns "pid 4711 on host7".
  std::string describe() const;
};

/// A member that is gone, and why; an empty reason: it left.
struct Departure {
  Member member;
  uint64_t generation = 0;  ///< the first one without it; while none has formed, 0
  std::string reason;
  bool operator==(const Departure&) const = default;
};

enum class MembershipPhase {
  forming,   ///< before the first generation
  running,   ///< the members are those of `generation`
  waiting,   ///< too few members are left of `generation`; others may come
  finished,  ///< the run is complete
  failed,    ///< the run is over: too few members came in time
  expelled,  ///< this process is no member any more but may join again; never of the register
};

/// The register's view of the members. All of them read the same text for a revision, and the
/// same list for a generation.
struct Membership {
  uint64_t revision = 0;
  /// number of the newest generation; 0: none yet
  uint64_t generation = 0;
  /// its members; an index is a rank. Members of the former generation come first, in their order
  std::vector<Member> members;
  MembershipPhase phase = MembershipPhase::forming;
  /// why the phase is waiting, failed or expelled
  std::string reason;
  /// members that are gone, oldest first; at most max_departures
  std::vector<Departure> departures;
  bool operator==(const Membership&) const = default;

  /// Returns the rank of a member in the newest generation; -1: it is none.
  int rank_of(const std::string& id) const;
  /// Whether a member of the newest generation is still there, also while the run waits.
  bool is_member(const std::string& id) const;
  bool is_over() const { return phase >= MembershipPhase::finished; }
};

inline constexpr size_t max_departures = 64;

/// When generations form.
struct MembershipRules {
  int min_processes = 1;
  /// further processes are spare: they wait until a member is gone
  int max_processes = 1;
  /// how many the first generation waits for
  int expected = 1;
  /// how long a member may be silent
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  /// how long the first generation waits for the expected processes
  std::chrono::milliseconds forming_time = std::chrono::minutes(5);
  /// how long the run waits with fewer than min_processes
  std::chrono::milliseconds waiting_time = std::chrono::seconds(30);
  /// how long a change waits for others, so that one generation takes in all of them
  std::chrono::milliseconds settle_time = std::chrono::milliseconds(100);
};

/// Throws ConfigError naming `where` unless 1 <= min <= expected <= max.
void check_rules(const std::string& where, const MembershipRules& rules);

/// Who is there at the moment.
struct Presence {
  /// members and newcomers in the order in which they joined, without those that are leaving
  std::vector<Member> present;
  /// members that are gone since the last membership
  std::vector<Departure> departures;
  bool forming_over = false;  ///< whether forming_time has passed
  bool waiting_over = false;  ///< whether waiting_time has passed
};

/// Returns the membership that follows `last`; nothing if it still holds. This is the only place
/// that decides who is in a generation; registers differ in how they agree on the result.
std::optional<Membership> next_membership(const Membership& last, const Presence& presence,
                                          const MembershipRules& rules);

Json to_json(const Member& member);
Json to_json(const Membership& membership);

/// Read what to_json() wrote. Throw ConfigError naming `path`.
Member member_from(const Json& json, const JsonPath& path);
Membership membership_from(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
