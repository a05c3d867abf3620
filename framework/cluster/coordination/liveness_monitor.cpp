#include <tessera/framework/cluster/coordination/liveness_monitor.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;

namespace {

/// Number of calls kept for comparison; ranks are never that far apart.
constexpr size_t max_seen = 1024;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string waiting_text(std::span<const int> ranks, const std::string& where) {
  return str(rank_names(ranks), ranks.size() == 1 ? " waits in " : " wait in ", where);
}

std::string waiting_text(const PendingGather& round) {
  return waiting_text(round.ranks(true), round.where);
}

}  // namespace

std::chrono::milliseconds heartbeat_interval(std::chrono::milliseconds timeout) {
  return std::clamp<std::chrono::milliseconds>(timeout / 4, 20ms, 500ms);
}

LivenessMonitor::LivenessMonitor(std::vector<Peer> peers, std::chrono::milliseconds timeout,
                                 Time now)
    : peers_(std::move(peers)),
      timeout_(timeout),
      members_(peers_.size()),
      rounds_(static_cast<int>(peers_.size())) {
  for (Member& it : members_) it.last_heard = now;
}

void LivenessMonitor::discount_pause(Time::duration duration) {
  rounds_.discount_pause(duration);
  for (Member& it : members_) {
    it.last_heard += duration;
    if (it.inside) *it.inside += duration;
  }
}

std::string LivenessMonitor::compare(int rank, const CallRecord& call) {
  const auto [at, is_first] = seen_.try_emplace(call.number, rank, call);
  if (seen_.size() > max_seen) seen_.erase(seen_.begin());
  if (is_first || at->second.second.hash == call.hash) return "";
  const auto& [other, its_call] = at->second;
  if (other < rank) return differ_text(other, its_call, rank, call);
  return differ_text(rank, call, other, its_call);
}

std::string LivenessMonitor::beat(int rank, const std::optional<CallRecord>& last, Time now) {
  Member& it = member(rank);
  // A check() may overtake a heartbeat that was composed before it.
  if (!last || (it.last && last->number < it.last->number)) return "";
  const bool same = it.last && it.last->number == last->number;
  if (last->done) {
    it.inside.reset();
  } else if (!same || !it.inside) {
    it.inside = now;
  }
  it.last = last;
  std::string reason = compare(rank, *last);
  return reason.empty() ? find_left() : reason;
}

std::string LivenessMonitor::check(int rank, const CallRecord& call, Time now,
                                   std::optional<PendingGather>& complete) {
  Member& it = member(rank);
  if (!it.last || call.number >= it.last->number) {
    it.last = call;
    it.inside.reset();
  }
  std::string reason = compare(rank, call);
  if (!reason.empty()) return reason;
  complete = rounds_.add({check_key(call.number), call_text(call), true, {}, now}, rank, "");
  return complete ? "" : find_left();
}

std::string LivenessMonitor::gather(int rank, const std::string& key, std::string text, Time now,
                                    std::optional<PendingGather>& complete) {
  const std::string where = str("the exchange of ", in_quotes(key));
  complete = rounds_.add({text_key(key), where, false, {}, now}, rank, std::move(text));
  return complete ? "" : find_left();
}

std::string LivenessMonitor::left(int rank, const std::optional<CallRecord>& last, Time now) {
  std::string reason = beat(rank, last, now);
  member(rank).inside.reset();
  member(rank).state = "left";
  return reason.empty() ? find_left() : reason;
}

std::string LivenessMonitor::lost(int rank) {
  member(rank).state = "lost";
  return lost_text(peers_[static_cast<size_t>(rank)], member(rank).note);
}

std::string LivenessMonitor::check_deadlines(Time now) {
  std::string reason = find_silent(now);
  if (reason.empty()) reason = find_late(now);
  return reason.empty() ? find_stuck(now) : reason;
}

std::string LivenessMonitor::find_silent(Time now) {
  for (const Peer& peer : peers_) {
    const Member& it = member(peer.rank);
    if (it.state.empty() && now - it.last_heard > timeout_) return give_up(peer.rank, now);
  }
  return "";
}

bool LivenessMonitor::misses_beats(int rank, Time now) const {
  return now - members_[static_cast<size_t>(rank)].last_heard > 2 * heartbeat_interval(timeout_);
}

std::string LivenessMonitor::give_up(int rank, Time now) {
  silent(rank);
  return silent_text(peers_[static_cast<size_t>(rank)], seconds(now - member(rank).last_heard));
}

std::string LivenessMonitor::late(const std::vector<int>& ranks, Time now, Time since,
                                  const std::string& waiting) {
  std::vector<Peer> late;
  for (const int rank : ranks) {
    // The rank was stopped while others were already waiting.
    if (misses_beats(rank, now)) return give_up(rank, now);
    late.push_back(peers_[static_cast<size_t>(rank)]);
  }
  return late_text(late, seconds(now - since), waiting);
}

std::string LivenessMonitor::find_late(Time now) {
  const PendingGather* round = rounds_.oldest();
  if (round == nullptr || now - round->since <= timeout_) return "";
  return late(round->ranks(false), now, round->since, waiting_text(*round));
}

std::string LivenessMonitor::find_stuck(Time now) {
  // Position of the ranks furthest behind; a rank that never made a call is before all others.
  const auto place = [](const Member& it) { return it.last ? it.last->number + 1 : 0; };
  uint64_t first = UINT64_MAX;
  for (const Member& it : members_) {
    if (it.state.empty()) first = std::min(first, place(it));
  }
  for (const Member& it : members_) {
    if (!it.state.empty() || !it.inside || now - *it.inside <= timeout_) continue;
    const std::string waiting = waiting_in_call(it.last->number);
    if (place(it) == first) {
      // A rank that has completed the call and was stopped afterwards blocks the others, too.
      for (const Peer& peer : peers_) {
        if (is_there(peer.rank) && misses_beats(peer.rank, now)) return give_up(peer.rank, now);
      }
      return stuck_text(seconds(now - *it.inside), waiting);
    }
    std::vector<int> behind;
    for (const Peer& peer : peers_) {
      const Member& other = member(peer.rank);
      if (other.state.empty() && place(other) == first) behind.push_back(peer.rank);
    }
    return late(behind, now, *it.inside, waiting);
  }
  return "";
}

std::string LivenessMonitor::find_left() const {
  for (const Peer& peer : peers_) {
    const Member& gone = members_[static_cast<size_t>(peer.rank)];
    if (gone.state != "left") continue;
    if (const PendingGather* round = rounds_.waiting_for(peer.rank)) {
      return left_text(peer, gone.note, waiting_text(*round));
    }
    for (const Member& it : members_) {
      if (!it.inside) continue;
      const bool is_behind = !gone.last || gone.last->number < it.last->number;
      const bool gave_up = !is_behind && gone.last->number == it.last->number && !gone.last->done;
      if (is_behind || gave_up) {
        return left_text(peer, gone.note, waiting_in_call(it.last->number));
      }
    }
  }
  return "";
}

std::string LivenessMonitor::waiting_in_call(uint64_t number) const {
  std::vector<int> ranks;
  std::string where;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const Member& it = members_[rank];
    if (!it.inside || it.last->number != number) continue;
    ranks.push_back(static_cast<int>(rank));
    where = call_text(*it.last);
  }
  return waiting_text(ranks, where);
}

std::vector<RankReport> LivenessMonitor::reports() const {
  std::vector<RankReport> reports;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const Member& it = members_[rank];
    RankReport report{peers_[rank], it.state, it.note, it.calls};
    if (report.calls.empty() && it.last) report.calls.push_back(*it.last);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace tessera::detail
