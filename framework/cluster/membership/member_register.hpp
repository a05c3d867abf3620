#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/membership/generation.hpp>

namespace tessera::detail {

/// The register of members without sockets, threads and clocks: what happened goes in, with the
/// time, and the membership comes out. Messages about anybody who is not there are ignored, so that
/// late and repeated ones change nothing.
class MemberRegister {
 public:
  using Time = std::chrono::steady_clock::time_point;

  MemberRegister(const MembershipRules& rules, Time now);

  /// Adds a newcomer. Returns why it is refused; "" if it is not.
  std::string join(const Member& member, Time now);
  /// Notes a sign of life.
  void hear(const std::string& id, Time now);
  /// Takes a member out of the next generation. It remains a member of the present one, which ends
  /// only when the others have left it, too.
  void leave(const std::string& id, Time now);
  /// Removes a process that is gone: its connection closed or it ended.
  void lose(const std::string& id, const std::string& reason, Time now);
  /// Removes a member that another one reports as lost. Ignored, and false, unless both are members
  /// of the newest generation and the report is about that.
  bool report_lost(const std::string& from, uint64_t generation, const std::string& id,
                   const std::string& reason, Time now);
  /// Ends the run as complete. Ignored, and false, unless a member of the newest generation says so
  /// about that one.
  bool finish(const std::string& from, uint64_t generation);
  /// Ends the run, as no more processes will come.
  void fail(const std::string& reason);
  /// Removes silent members and lets time pass otherwise.
  void tick(Time now);
  /// Forgives a time in which nobody could be heard, as this process did not run.
  void discount_pause(std::chrono::steady_clock::duration pause);

  const Membership& membership() const { return membership_; }
  bool is_present(const std::string& id) const;
  /// Returns those removed since the last call, with the reason.
  std::vector<Departure> take_removed();
  /// Returns when tick() has something to do next.
  Time wake_time() const;

 private:
  struct Present {
    Member member;
    Time heard;
    bool leaving = false;
  };

  std::vector<Present>::iterator find(const std::string& id);
  void remove(std::vector<Present>::iterator each, const std::string& reason, Time now);
  void note_departure(const Member& member, const std::string& reason, Time now);
  void note_change(Time now);
  void end(MembershipPhase phase, const std::string& reason);
  void decide(Time now);

  MembershipRules rules_;
  Membership membership_;
  std::vector<Present> present_;
  std::vector<Departure> departures_;  ///< for the next membership
  std::vector<Departure> removed_;     ///< for take_removed()
  std::deque<std::string> used_ids_;   ///< the last ones, each of which may join once
  Time begin_;
  std::optional<Time> changed_;  ///< when the first change came that is not decided yet
  std::optional<Time> waiting_since_;
};

}  // namespace tessera::detail
