#include <tessera/framework/cluster/membership/member_register.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Maximum number of members and spare processes.
constexpr size_t max_present = 8192;
constexpr size_t max_used_ids = 4096;
constexpr size_t max_reason = 4096;

}  // namespace

MemberRegister::MemberRegister(const MembershipRules& rules, Time now)
    : rules_(rules), begin_(now) {}

std::vector<MemberRegister::Present>::iterator MemberRegister::find(const std::string& id) {
  return std::find_if(present_.begin(), present_.end(),
                      [&](const Present& each) { return each.member.id == id; });
}

bool MemberRegister::is_present(const std::string& id) const {
  return std::any_of(present_.begin(), present_.end(),
                     [&](const Present& each) { return each.member.id == id; });
}

std::string MemberRegister::join(const Member& member, Time now) {
  if (std::find(used_ids_.begin(), used_ids_.end(), member.id) != used_ids_.end()) {
    return ConfigError("elastic", "a process joins under an id of its own each time",
                       str(member.describe(), " with one that was used"), "join again")
        .what();
  }
  if (present_.size() >= max_present) {
    return ConfigError("elastic", str("at most ", max_present, " processes take part"),
                       str("one more, ", member.describe()), "start fewer processes")
        .what();
  }
  used_ids_.push_back(member.id);
  if (used_ids_.size() > max_used_ids) used_ids_.pop_front();
  present_.push_back({member, now});
  note_change(now);
  return "";
}

void MemberRegister::hear(const std::string& id, Time now) {
  if (const auto each = find(id); each != present_.end()) each->heard = std::max(each->heard, now);
}

void MemberRegister::leave(const std::string& id, Time now) {
  const auto each = find(id);
  if (each == present_.end() || each->leaving) return;
  each->leaving = true;
  note_departure(each->member, "", now);
}

void MemberRegister::lose(const std::string& id, const std::string& reason, Time now) {
  if (const auto each = find(id); each != present_.end()) remove(each, reason, now);
}

bool MemberRegister::report_lost(const std::string& from, uint64_t generation,
                                 const std::string& id, const std::string& reason, Time now) {
  const bool current = membership_.phase == MembershipPhase::running &&
                       generation == membership_.generation && from != id;
  const auto each = find(id);
  if (!current || membership_.rank_of(from) < 0 || membership_.rank_of(id) < 0 ||
      !is_present(from) || each == present_.end()) {
    return false;
  }
  remove(each, one_line(reason, max_reason), now);
  return true;
}

bool MemberRegister::finish(const std::string& from, uint64_t generation) {
  if (membership_.phase != MembershipPhase::running || generation != membership_.generation ||
      membership_.rank_of(from) < 0 || !is_present(from)) {
    return false;
  }
  end(MembershipPhase::finished, "");
  return true;
}

void MemberRegister::fail(const std::string& reason) {
  if (!membership_.is_over()) end(MembershipPhase::failed, reason);
}

void MemberRegister::end(MembershipPhase phase, const std::string& reason) {
  ++membership_.revision;
  membership_.phase = phase;
  membership_.reason = reason;
  changed_.reset();
}

void MemberRegister::remove(std::vector<Present>::iterator each, const std::string& reason,
                            Time now) {
  const Present gone = std::move(*each);
  present_.erase(each);
  removed_.push_back({gone.member, membership_.generation, reason});
  if (!gone.leaving) note_departure(gone.member, reason, now);
}

void MemberRegister::note_departure(const Member& member, const std::string& reason, Time now) {
  // Nobody misses a spare process.
  if (membership_.rank_of(member.id) >= 0) departures_.push_back({member, 0, reason});
  note_change(now);
}

void MemberRegister::note_change(Time now) {
  if (!changed_ && !membership_.is_over()) changed_ = now;
}

void MemberRegister::tick(Time now) {
  std::vector<std::string> silent;
  for (const Present& each : present_) {
    if (now - each.heard >= rules_.timeout) silent.push_back(each.member.id);
  }
  for (const std::string& id : silent) {
    const auto each = find(id);
    const std::chrono::duration<double> time = now - each->heard;
    const auto tenths = static_cast<int64_t>(time.count() * 10);
    remove(each,
           str("silent for ", tenths / 10, ".", tenths % 10,
               " s: stopped, without processor time, or cut off"),
           now);
  }
  decide(now);
}

void MemberRegister::decide(Time now) {
  const bool settled = changed_ && now - *changed_ >= rules_.settle_time;
  Presence presence;
  presence.forming_over =
      membership_.phase == MembershipPhase::forming && now - begin_ >= rules_.forming_time;
  presence.waiting_over = waiting_since_ && now - *waiting_since_ >= rules_.waiting_time;
  if (!settled && !presence.forming_over && !presence.waiting_over) return;
  for (const Present& each : present_) {
    if (!each.leaving) presence.present.push_back(each.member);
  }
  presence.departures = departures_;
  changed_.reset();
  std::optional<Membership> next = next_membership(membership_, presence, rules_);
  if (!next) return;
  departures_.clear();
  membership_ = std::move(*next);
  if (membership_.phase != MembershipPhase::waiting) {
    waiting_since_.reset();
  } else if (!waiting_since_) {
    waiting_since_ = now;
  }
}

void MemberRegister::discount_pause(std::chrono::steady_clock::duration pause) {
  for (Present& each : present_) each.heard += pause;
  begin_ += pause;
  if (waiting_since_) *waiting_since_ += pause;
}

std::vector<Departure> MemberRegister::take_removed() { return std::exchange(removed_, {}); }

MemberRegister::Time MemberRegister::wake_time() const {
  Time time = Time::max();
  for (const Present& each : present_) time = std::min(time, each.heard + rules_.timeout);
  if (membership_.is_over()) return time;
  if (changed_) time = std::min(time, *changed_ + rules_.settle_time);
  if (membership_.phase == MembershipPhase::forming) {
    time = std::min(time, begin_ + rules_.forming_time);
  }
  if (waiting_since_) time = std::min(time, *waiting_since_ + rules_.waiting_time);
  return time;
}

}  // namespace tessera::detail
