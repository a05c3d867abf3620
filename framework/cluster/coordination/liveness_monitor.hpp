#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/cluster/coordination/coordination.hpp>
#include <tessera/framework/cluster/coordination/failure_report.hpp>
#include <tessera/framework/cluster/coordination/pending_gathers.hpp>

namespace tessera::detail {

/// How often processes show that they are alive.
std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout);

/// What rank 0 knows of all ranks, and the rules by which a run is over. Functions that return a
/// text return why the run is over, empty if it goes on.
class LivenessMonitor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  LivenessMonitor(std::vector<Peer> peers, std::chrono::milliseconds timeout, Time now);

  const std::vector<Peer>& peers() const { return peers_; }
  /// The rank gave a sign of life.
  void heard(int rank, Time now) { member(rank).heard = now; }
  void note(int rank, const std::string& text) { member(rank).note = text; }
  /// The rank's last call, none if it never made one.
  std::string beat(int rank, const std::optional<CallRecord>& last, Time now);
  /// The rank is about to make a call, or gives a text; the exchange, once complete, is in
  /// `complete`.
  std::string check(int rank, const CallRecord& call, Time now, std::optional<Round>& complete);
  std::string gather(int rank, const std::string& key, std::string text, Time now,
                     std::optional<Round>& complete);
  /// The rank said goodbye.
  std::string left(int rank, const std::optional<CallRecord>& last, Time now);
  /// The rank's connection is gone.
  std::string lost(int rank);
  /// The rank did not answer.
  void silent(int rank) { member(rank).state = "silent"; }
  /// Looks for ranks that are late or silent.
  std::string judge(Time now);
  /// Leaves out a time in which this process itself did not run, so that nobody could be heard.
  void discount_pause(Time::duration duration);

  bool is_there(int rank) const { return members_[static_cast<size_t>(rank)].state.empty(); }
  void set_calls(int rank, std::vector<CallRecord> calls) { member(rank).calls = std::move(calls); }
  std::vector<RankReport> reports() const;

 private:
  struct Member {
    std::string state;  ///< empty while it runs, else what RankReport says
    std::string note;
    Time heard;
    std::optional<CallRecord> last;
    /// Since when it is in its last call, as its heartbeats say.
    std::optional<Time> inside;
    std::vector<CallRecord> calls;
  };

  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  /// Compares a call with those of the same number on other ranks.
  std::string compare(int rank, const CallRecord& call);
  std::string find_silent(Time now);
  std::string find_late(Time now);
  std::string find_stuck(Time now);
  /// Why the run is over as these ranks do not come where others wait.
  std::string late(const std::vector<int>& ranks, Time now, Time since, const std::string& waiting);
  /// It was silent for longer than a process that runs is, if not for the whole time-out yet.
  bool misses_beats(int rank, Time now) const;
  std::string give_up(int rank, Time now);
  /// Ranks that others wait for although they have left.
  std::string find_left() const;
  std::string waiting_in_call(uint64_t number) const;

  std::vector<Peer> peers_;
  std::chrono::milliseconds timeout_;
  std::vector<Member> members_;
  ControlRounds rounds_;
  /// The first rank known to make a call, by number.
  std::map<uint64_t, std::pair<int, CallRecord>> seen_;
};

}  // namespace tessera::detail
