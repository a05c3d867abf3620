#include <tessera/framework/parameter_server/job/main_thread_executor.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;

bool MainThreadExecutor::run(const Work& work, const Predicate& cancelled, int phase) {
  Entry entry{&work, phase};
  std::unique_lock lock(mutex_);
  if (left_) return false;
  entries_.push_back(&entry);
  changed_.notify_all();
  const auto over = [&] { return entry.stage == Stage::done || entry.stage == Stage::refused; };
  while (!changed_.wait_for(lock, 50ms, over)) {
    if (entry.stage != Stage::waiting) continue;
    lock.unlock();
    const bool give_up = cancelled();
    lock.lock();
    if (give_up && entry.stage == Stage::waiting) {
      entries_.remove(&entry);
      return false;
    }
  }
  return entry.stage == Stage::done;
}

std::list<MainThreadExecutor::Entry*>::iterator MainThreadExecutor::find(int phase) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = **at;
    if (phase == 0 || entry.phase == 0 || entry.phase == phase) return at;
    if (entry.phase > phase) {
      ++at;
      continue;
    }
    entry.stage = Stage::refused;
    at = entries_.erase(at);
    changed_.notify_all();
  }
  return entries_.end();
}

bool MainThreadExecutor::serve_one(int phase, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return woken_ || find(phase) != entries_.end(); });
  woken_ = false;
  const auto it = find(phase);
  if (it == entries_.end()) return false;
  Entry& entry = **it;
  entries_.erase(it);
  entry.stage = Stage::running;
  lock.unlock();
  const auto finish = [&] {
    lock.lock();
    entry.stage = Stage::done;
    changed_.notify_all();
  };
  try {
    (*entry.work)();
  } catch (...) {
    finish();
    throw;
  }
  finish();
  return true;
}

void MainThreadExecutor::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  for (Entry* entry : entries_) entry->stage = Stage::refused;
  entries_.clear();
  changed_.notify_all();
}

void MainThreadExecutor::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

}  // namespace tessera::detail
