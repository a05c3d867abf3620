#include <tessera/datasets/pipeline/internal/prefetcher.hpp>

#include <utility>

#include <c10/core/InferenceMode.h>

#include <tessera/framework/base/profile.hpp>

namespace tessera::detail {

Prefetcher::Prefetcher(std::shared_ptr<const PipelineElements> elements, int64_t first,
                       int64_t threads, int64_t ahead)
    : elements_(std::move(elements)), ahead_(ahead), next_to_make_(first), next_to_return_(first) {
  for (int64_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

Prefetcher::Made Prefetcher::make(int64_t number) const {
  const std::optional<int64_t> size = elements_->size();
  if (size && number >= *size) return {};
  const ProfileSpan span(SpanKind::data, "make element");
  try {
    const int64_t numbers[] = {number};
    std::vector<Examples> elements = elements_->get(numbers);
    if (elements.empty()) return {};
    return {std::move(elements[0]), nullptr};
  } catch (...) {
    return {std::nullopt, std::current_exception()};
  }
}

void Prefetcher::work(const std::stop_token& stop) {
  try {
    make_all(stop);
  } catch (...) {
    // Out of memory for an element that was made: next() must not wait for it.
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    ended_ = true;
    changed_.notify_all();
  }
}

void Prefetcher::make_all(const std::stop_token& stop) {
  const c10::InferenceMode inference;
  use_one_aten_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, stop, [&] { return ended_ || next_to_make_ < next_to_return_ + ahead_; });
    if (stop.stop_requested() || ended_) return;
    const int64_t number = next_to_make_++;
    lock.unlock();
    Made made = make(number);
    lock.lock();
    ended_ = ended_ || !made.element;
    made_.emplace(number, std::move(made));
    changed_.notify_all();
  }
}

std::optional<Examples> Prefetcher::next() {
  if (threads_.empty()) {
    Made made = make(next_to_return_);
    if (made.error) std::rethrow_exception(made.error);
    if (made.element) ++next_to_return_;
    return std::move(made.element);
  }
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
  lock.unlock();
  changed_.notify_all();
  return element;
}

}  // namespace tessera::detail
