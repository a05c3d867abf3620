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

/// Maximum time in which calls end that a rank was part of before it failed and left.
constexpr std::chrono::milliseconds max_last_call = 5s;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string waiting_text(std::span<const int> ranks, const std::string& where) {
  return str(rank_names(ranks), ranks.size() == 1 ? " waits in " : " wait in ", where);
}

std::string waiting_text(const PendingGather& pending) {
  return waiting_text(pending.ranks(true), pending.where);
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
      pending_(static_cast<int>(peers_.size())) {
  for (Member& it : members_) it.last_received = now;
}

void LivenessMonitor::discount_pause(Time::duration duration) {
  pending_.discount_pause(duration);
  for (Member& it : members_) {
    it.last_received += duration;
    if (it.in_call_since) *it.in_call_since += duration;
  }
}

std::string LivenessMonitor::compare(int rank, const CallRecord& call) {
  if (call.hash == 0) return "";
  const auto [at, is_first] =
      seen_.try_emplace({call.number_of_all(), call.ranks, call.number}, rank, call);
  if (seen_.size() > max_seen) seen_.erase(seen_.begin());
  if (is_first || at->second.second.hash == call.hash) return "";
  const auto& [other, its_call] = at->second;
  if (other < rank) return differ_text(other, its_call, rank, call);
  return differ_text(rank, call, other, its_call);
}

std::string LivenessMonitor::on_heartbeat(int rank, const std::optional<CallRecord>& last,
                                          Time now) {
  Member& it = member(rank);
  // A check() may overtake a heartbeat that was composed before it.
  if (!last || (it.last && last->count() < it.last->count())) return "";
  const bool same = it.last && it.last->count() == last->count();
  if (last->done) {
    it.in_call_since.reset();
  } else if (!same || !it.in_call_since) {
    it.in_call_since = now;
  }
  it.last = last;
  std::string reason = compare(rank, *last);
  return reason.empty() ? find_left() : reason;
}

std::string LivenessMonitor::check(int rank, const CallRecord& call, Time now,
                                   std::optional<PendingGather>& complete) {
  Member& it = member(rank);
  if (!it.last || call.count() >= it.last->count()) {
    it.last = call;
    it.in_call_since.reset();
  }
  std::string reason = compare(rank, call);
  if (!reason.empty()) return reason;
  complete = pending_.add({check_key(call.number), call_text(call), true, {}, now}, rank, "");
  return complete ? "" : find_left();
}

std::string LivenessMonitor::gather(int rank, const std::string& key, std::string text, Time now,
                                    std::optional<PendingGather>& complete) {
  const std::string where = str("the exchange of ", in_quotes(key));
  complete = pending_.add({text_key(key), where, false, {}, now}, rank, std::move(text));
  return complete ? "" : find_left();
}

std::string LivenessMonitor::mark_left(int rank, const std::optional<CallRecord>& last, Time now) {
  std::string reason = on_heartbeat(rank, last, now);
  member(rank).in_call_since.reset();
  member(rank).state = "left";
  member(rank).left_at = now;
  return reason.empty() ? find_left() : reason;
}

std::string LivenessMonitor::mark_lost(int rank) {
  member(rank).state = "lost";
  return lost_text(peers_[static_cast<size_t>(rank)], member(rank).note);
}

std::string LivenessMonitor::check_deadlines(Time now) {
  std::string reason = find_unresponsive(now);
  if (reason.empty()) reason = find_stranded(now);
  if (reason.empty()) reason = find_late(now);
  return reason.empty() ? find_stuck(now) : reason;
}

std::string LivenessMonitor::find_unresponsive(Time now) {
  for (const Peer& peer : peers_) {
    const Member& it = member(peer.rank);
    if (it.state.empty() && now - it.last_received > timeout_) return give_up(peer.rank, now);
  }
  return "";
}

bool LivenessMonitor::misses_heartbeats(int rank, Time now) const {
  return now - members_[static_cast<size_t>(rank)].last_received > 2 * heartbeat_interval(timeout_);
}

std::string LivenessMonitor::give_up(int rank, Time now) {
  mark_unresponsive(rank);
  return unresponsive_text(peers_[static_cast<size_t>(rank)],
                           seconds(now - member(rank).last_received));
}

std::string LivenessMonitor::late(const std::vector<int>& ranks, Time now, Time since,
                                  const std::string& waiting) {
  std::vector<Peer> late;
  for (const int rank : ranks) {
    // The rank was stopped while others were already waiting.
    if (misses_heartbeats(rank, now)) return give_up(rank, now);
    late.push_back(peers_[static_cast<size_t>(rank)]);
  }
  return late_text(late, seconds(now - since), waiting);
}

std::string LivenessMonitor::find_late(Time now) {
  const PendingGather* pending = pending_.oldest();
  if (pending == nullptr || now - pending->since <= timeout_) return "";
  return late(pending->ranks(false), now, pending->since, waiting_text(*pending));
}

std::string LivenessMonitor::find_stuck(Time now) {
  // Position of the ranks furthest behind; a rank that never made a call is before all others.
  const auto position = [](const Member& it) { return it.last ? it.last->number_of_all() + 1 : 0; };
  uint64_t first = UINT64_MAX;
  for (const Member& it : members_) {
    if (it.state.empty()) first = std::min(first, position(it));
  }
  for (const Member& it : members_) {
    if (!it.state.empty() || !it.in_call_since || now - *it.in_call_since <= timeout_) continue;
    const std::string waiting = waiting_in_call(*it.last);
    if (position(it) == first || !it.last->ranks.empty()) {
      // A rank that has completed the call and was stopped afterwards blocks the others, too.
      for (const Peer& peer : peers_) {
        if (is_present(peer.rank) && misses_heartbeats(peer.rank, now))
          return give_up(peer.rank, now);
      }
      return stuck_text(seconds(now - *it.in_call_since), waiting);
    }
    std::vector<int> lagging;
    for (const Peer& peer : peers_) {
      const Member& other = member(peer.rank);
      if (other.state.empty() && position(other) == first) lagging.push_back(peer.rank);
    }
    return late(lagging, now, *it.in_call_since, waiting);
  }
  return "";
}

std::string LivenessMonitor::find_left() const {
  for (const Peer& peer : peers_) {
    const Member& departed = members_[static_cast<size_t>(peer.rank)];
    if (departed.state != "left") continue;
    if (const PendingGather* pending = pending_.waiting_for(peer.rank)) {
      return left_text(peer, departed.note, waiting_text(*pending));
    }
    for (const Member& it : members_) {
      // Whether those of some ranks still end, find_stranded() sees by the time.
      if (!it.in_call_since || !it.last->ranks.empty()) continue;
      const bool lags = !departed.last || departed.last->number_of_all() < it.last->number;
      const bool gave_up = !lags && departed.last->ranks.empty() &&
                           departed.last->number == it.last->number && !departed.last->done;
      if (lags || gave_up) {
        return left_text(peer, departed.note, waiting_in_call(*it.last));
      }
    }
  }
  return "";
}

std::string LivenessMonitor::find_stranded(Time now) const {
  for (const Peer& peer : peers_) {
    const Member& departed = members_[static_cast<size_t>(peer.rank)];
    if (departed.state != "left") continue;
    for (const Member& it : members_) {
      if (!it.state.empty() || !it.in_call_since) continue;
      const std::vector<int>& with = it.last->ranks;
      const bool together = std::find(with.begin(), with.end(), peer.rank) != with.end();
      if (departed.note.empty() && !together) continue;
      const Time since = std::max(*it.in_call_since, departed.left_at);
      if (now - since <= std::min(max_last_call, timeout_)) continue;
      return left_text(peer, departed.note, waiting_in_call(*it.last));
    }
  }
  return "";
}

std::string LivenessMonitor::waiting_in_call(const CallRecord& call) const {
  std::vector<int> ranks;
  std::string where;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const Member& it = members_[rank];
    if (!it.in_call_since || it.last->number != call.number || it.last->ranks != call.ranks ||
        it.last->text != call.text) {
      continue;
    }
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
