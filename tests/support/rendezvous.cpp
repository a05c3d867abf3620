#include "tests/support/rendezvous.hpp"

#include <tessera/framework/base/error.hpp>

#include <algorithm>

namespace tessera::test {

using namespace detail;

void Rendezvous::set_reason(const std::string& reason) {
  if (reason_.empty()) reason_ = reason;
  changed_.notify_all();
}

void Rendezvous::fail_locked(const std::string& reason) {
  set_reason(reason);
  check_locked();
  throw std::logic_error("unreachable");
}

void Rendezvous::check_locked() const {
  if (!reason_.empty()) throw CommError("threads", "the ranks act together", reason_, "");
}

void Rendezvous::fail(const std::string& reason) {
  const Lock lock(mutex_);
  fail_locked(reason);
}

void Rendezvous::abort(const std::string& reason) {
  const Lock lock(mutex_);
  set_reason(reason);
}

void Rendezvous::check_alive() {
  const Lock lock(mutex_);
  check_locked();
}

template <class Ready>
void Rendezvous::await(Lock& lock, const std::string& what, const Ready& ready) {
  const bool in_time =
      changed_.wait_for(lock, patience_, [&] { return ready() || !reason_.empty(); });
  if (!in_time) fail_locked(str("no answer within ", patience_.count(), " ms to ", what));
  if (!ready()) check_locked();
}

void Rendezvous::check_partners(int rank, const Meeting& meeting) {
  for (int other : meeting.ranks) {
    if (left_[static_cast<size_t>(other)]) {
      fail_locked(str("rank ", rank, " calls ", meeting.call, " but rank ", other, " has ended"));
    }
    const auto& elsewhere = waits_in_[static_cast<size_t>(other)];
    if (!elsewhere || elsewhere.get() == &meeting || elsewhere->complete()) continue;
    if (std::count(elsewhere->ranks.begin(), elsewhere->ranks.end(), rank)) {
      fail_locked(str("rank ", rank, " calls ", meeting.call, " but rank ", other, " waits in ",
                      elsewhere->call, " of other ranks"));
    }
  }
}

Rendezvous::Parcels Rendezvous::meet(int rank, const std::vector<int>& ranks,
                                     const std::string& call, std::vector<at::Tensor> parcel) {
  Lock lock(mutex_);
  check_locked();
  std::shared_ptr<Meeting>& slot = open_[ranks];
  if (!slot) slot = std::make_shared<Meeting>(Meeting{ranks, call, {}});
  const std::shared_ptr<Meeting> meeting = slot;
  if (meeting->call != call) {
    fail_locked(str("rank ", rank, " calls ", call, " but rank ", meeting->parcels.begin()->first,
                    " calls ", meeting->call));
  }
  check_partners(rank, *meeting);
  meeting->parcels[rank] = std::move(parcel);
  if (meeting->complete()) {
    open_.erase(ranks);
    changed_.notify_all();
  } else {
    waits_in_[static_cast<size_t>(rank)] = meeting;
    await(lock, call, [&] { return meeting->complete(); });
    waits_in_[static_cast<size_t>(rank)] = nullptr;
  }
  return Parcels(meeting, &meeting->parcels);
}

std::vector<std::string> Rendezvous::gather(int rank, const std::string& key,
                                            const std::string& text) {
  Lock lock(mutex_);
  check_locked();
  auto& by_rank = texts_[key];
  by_rank.resize(left_.size());
  const size_t call = by_rank[static_cast<size_t>(rank)].size();
  by_rank[static_cast<size_t>(rank)].push_back(text);
  changed_.notify_all();
  const auto has = [&](const std::vector<std::string>& texts) { return texts.size() > call; };
  await(lock, "gather " + key, [&] { return std::all_of(by_rank.begin(), by_rank.end(), has); });
  std::vector<std::string> all;
  for (const auto& texts : by_rank) all.push_back(texts[call]);
  return all;
}

std::shared_ptr<Rendezvous::Slot> Rendezvous::slot_locked(int from, int to, size_t number) {
  auto& slots = edges_[{from, to}].slots;
  while (slots.size() <= number) slots.push_back(std::make_shared<Slot>());
  return slots[number];
}

void Rendezvous::check_slot(const Slot& slot, int from, int to) {
  if (slot.sent.empty() || slot.awaited.empty() || slot.sent == slot.awaited) return;
  fail_locked(
      str("rank ", to, " awaits ", slot.awaited, " of rank ", from, ", which sends ", slot.sent));
}

void Rendezvous::send(int from, int to, const std::string& what, at::Tensor tensor) {
  const Lock lock(mutex_);
  check_locked();
  const auto slot = slot_locked(from, to, edges_[{from, to}].sent++);
  slot->sent = what;
  slot->tensor = std::move(tensor);
  check_slot(*slot, from, to);
  changed_.notify_all();
}

std::shared_ptr<Rendezvous::Slot> Rendezvous::receive(int from, int to, const std::string& what) {
  const Lock lock(mutex_);
  check_locked();
  const auto slot = slot_locked(from, to, edges_[{from, to}].awaited++);
  slot->awaited = what;
  check_slot(*slot, from, to);
  return slot;
}

at::Tensor Rendezvous::take(const Slot& slot) {
  Lock lock(mutex_);
  check_locked();
  await(lock, slot.awaited, [&] { return slot.tensor.defined(); });
  return slot.tensor;
}

void Rendezvous::leave(int rank) {
  const Lock lock(mutex_);
  left_[static_cast<size_t>(rank)] = true;
  for (const auto& [ranks, meeting] : open_) {
    if (std::count(ranks.begin(), ranks.end(), rank)) {
      set_reason(str("rank ", rank, " has ended, others call ", meeting->call));
    }
  }
  changed_.notify_all();
}

}  // namespace tessera::test
