#include <tessera/framework/data/internal/prefetcher.hpp>

#include <utility>

#include <c10/core/InferenceMode.h>

namespace tessera::detail {

Prefetcher::Prefetcher(std::function<Make()> begin, int64_t first, int64_t threads, int64_t ahead)
    : begin_(std::move(begin)), ahead_(ahead), next_to_make_(first), next_to_return_(first) {
  for (int64_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

void Prefetcher::work(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  try {
    make_all(stop);
  } catch (...) {
    // No thread can make elements, or memory ran out for one that was made: next() must not wait.
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    ended_ = true;
    changed_.notify_all();
  }
}

void Prefetcher::make_all(const std::stop_token& stop) {
  const Make make = begin_();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, stop, [&] { return ended_ || next_to_make_ < next_to_return_ + ahead_; });
    if (stop.stop_requested() || ended_) return;
    const int64_t number = next_to_make_++;
    lock.unlock();
    Made made;
    try {
      made.element = make(number);
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    ended_ = ended_ || !made.element;
    made_.emplace(number, std::move(made));
    changed_.notify_all();
  }
}

std::optional<Examples> Prefetcher::next() {
  std::unique_lock lock(mutex_);
  // This terminates: a thread that takes a number makes that element or fails, and all numbers
  // before the end have been taken.
  changed_.wait(lock, [&] { return made_.contains(next_to_return_) || failure_; });
  const auto made = made_.find(next_to_return_);
  if (made == made_.end()) std::rethrow_exception(failure_);
  if (made->second.error) std::rethrow_exception(made->second.error);
  if (!made->second.element) return std::nullopt;
  std::optional<Examples> element = std::move(made->second.element);
  made_.erase(made);
  ++next_to_return_;
  // Unlocked first, so that the thread that wakes up finds the mutex free.
  lock.unlock();
  changed_.notify_all();
  return element;
}

}  // namespace tessera::detail
