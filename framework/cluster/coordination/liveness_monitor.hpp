#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/failure_report.hpp>
#include <tessera/framework/cluster/coordination/pending_gathers.hpp>

namespace tessera::detail {

/// Returns the interval of heartbeats.
std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds timeout);

/// Rank 0's view of all ranks, and the rules that end a run. Functions that return a text return
/// why the run is over; empty: it continues.
class LivenessMonitor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  LivenessMonitor(std::vector<Peer> peers, std::chrono::milliseconds timeout, Time now);

  const std::vector<Peer>& peers() const { return peers_; }
  /// Records a message of the rank as a sign of life.
  void note_alive(int rank, Time now) { member(rank).last_received = now; }
  void set_note(int rank, const std::string& text) { member(rank).note = text; }
  /// Records a heartbeat with the rank's last call; nullopt: it never made one.
  std::string on_heartbeat(int rank, const std::optional<CallRecord>& last, Time now);
  /// Record a call that the rank is about to make, or a text for gather(). Once all ranks have
  /// joined, the exchange is stored in `complete`.
  std::string check(int rank, const CallRecord& call, Time now,
                    std::optional<PendingGather>& complete);
  std::string gather(int rank, const std::string& key, std::string text, Time now,
                     std::optional<PendingGather>& complete);
  /// Records that the rank left in an orderly way.
  std::string mark_left(int rank, const std::optional<CallRecord>& last, Time now);
  /// Records that the rank's connection broke.
  std::string mark_lost(int rank);
  /// Records that the rank did not answer.
  void mark_unresponsive(int rank) { member(rank).state = "silent"; }
  /// Checks all deadlines: finds ranks that are unresponsive, late or stuck, or stranded by one
  /// that has failed and left.
  std::string check_deadlines(Time now);
  /// Shifts all times by a pause of this process, in which it could not receive anything.
  void discount_pause(Time::duration duration);

  bool is_present(int rank) const { return members_[static_cast<size_t>(rank)].state.empty(); }
  void set_calls(int rank, std::vector<CallRecord> calls) { member(rank).calls = std::move(calls); }
  std::vector<RankReport> reports() const;

 private:
  struct Member {
    std::string state;  ///< see RankReport::state
    std::string note;
    Time last_received;
    std::optional<CallRecord> last;
    /// since when it is in its last call, by its heartbeats
    std::optional<Time> in_call_since;
    Time left_at;  ///< if the state is "left"
    std::vector<CallRecord> calls;
  };

  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  /// Compares a call with those of the same number on other ranks.
  std::string compare(int rank, const CallRecord& call);
  std::string find_unresponsive(Time now);
  std::string find_late(Time now);
  std::string find_stuck(Time now);
  /// Returns the reason for ranks that others have waited for too long.
  std::string late(const std::vector<int>& ranks, Time now, Time since, const std::string& waiting);
  /// Whether heartbeats of the rank are overdue, even if the timeout has not passed yet.
  bool misses_heartbeats(int rank, Time now) const;
  std::string give_up(int rank, Time now);
  /// Finds ranks that have left although others wait for them.
  std::string find_left() const;
  /// Finds ranks whose call does not end since a rank that failed, maybe within it, has left.
  std::string find_stranded(Time now) const;
  std::string waiting_in_call(const CallRecord& call) const;

  std::vector<Peer> peers_;
  std::chrono::milliseconds timeout_;
  std::vector<Member> members_;
  PendingGathers pending_;
  /// the first rank seen in a call and its record, by the number of the last call of all ranks, the
  /// ranks of the call and its number among theirs
  std::map<std::tuple<uint64_t, std::vector<int>, uint64_t>, std::pair<int, CallRecord>> seen_;
};

}  // namespace tessera::detail
