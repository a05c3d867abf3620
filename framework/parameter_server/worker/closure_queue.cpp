#include <tessera/framework/parameter_server/worker/closure_queue.hpp>

#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

using namespace strategy;

ClosureQueue::ClosureQueue(int workers) {
  counts_.done_by_worker.resize(static_cast<size_t>(workers));
}

void ClosureQueue::throw_if_ended() const {
  if (over_) std::rethrow_exception(over_);
}

void ClosureQueue::throw_error() {
  throw_if_ended();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

ClosurePtr ClosureQueue::add(rpc::RunRequest request) {
  const std::lock_guard lock(mutex_);
  throw_error();
  auto closure = std::make_shared<Closure>();
  request.set_closure(++counts_.scheduled);
  closure->request = std::move(request);
  open_.insert(closure->number());
  waiting_.push_back(closure);
  changed_.notify_all();
  return closure;
}

void ClosureQueue::join() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ || (error_ ? running_.empty() : open_.empty()); });
  ended_.clear();
  throw_error();
}

bool ClosureQueue::done() {
  const std::lock_guard lock(mutex_);
  throw_if_ended();
  return open_.empty();
}

ClosurePtr ClosureQueue::next_done() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return over_ || (error_ && running_.empty()) || !ended_.empty() || open_.empty();
  });
  throw_error();
  if (ended_.empty()) return nullptr;
  const ClosurePtr next = ended_.front();
  ended_.pop_front();
  return next;
}

int64_t ClosureQueue::cancel(const std::function<bool(const Closure&)>& which,
                             const std::string& why) {
  const auto error = std::make_exception_ptr(
      StateError("ClusterCoordinator", "a closure runs before it is fetched", why, ""));
  std::deque<ClosurePtr> remaining;
  int64_t cancelled = 0;
  for (const ClosurePtr& closure : waiting_) {
    if (!which(*closure)) {
      remaining.push_back(closure);
      continue;
    }
    close(closure, error);
    ++cancelled;
  }
  waiting_ = std::move(remaining);
  changed_.notify_all();
  return cancelled;
}

int64_t ClosureQueue::cancel_waiting() {
  const std::lock_guard lock(mutex_);
  throw_if_ended();
  return cancel([](const Closure& closure) { return !closure.begun; }, "it was cancelled");
}

const ClosureValue& ClosureQueue::wait(const ClosurePtr& closure) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_ || closure->stage == Closure::Stage::done; });
  if (closure->stage != Closure::Stage::done) throw_if_ended();
  if (closure->error) std::rethrow_exception(closure->error);
  return closure->result;
}

bool ClosureQueue::ready(const ClosurePtr& closure) const {
  const std::lock_guard lock(mutex_);
  return closure->stage == Closure::Stage::done;
}

ClosureQueue::Counts ClosureQueue::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

ClosurePtr ClosureQueue::take(const std::function<bool()>& may, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !over_ && !waiting_.empty() && may(); };
  if (!changed_.wait(lock, stop, ready)) return nullptr;
  const ClosurePtr closure = waiting_.front();
  waiting_.pop_front();
  closure->stage = Closure::Stage::running;
  closure->begun = true;
  running_.insert(closure->number());
  return closure;
}

void ClosureQueue::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

int64_t ClosureQueue::done_below() const {
  const std::lock_guard lock(mutex_);
  return open_.empty() ? counts_.scheduled + 1 : *open_.begin();
}

void ClosureQueue::requeue(const ClosurePtr& closure) {
  const std::lock_guard lock(mutex_);
  closure->stage = Closure::Stage::waiting;
  running_.erase(closure->number());
  ++counts_.rescheduled;
  if (closure->number() <= cancelled_) {
    // Waiting closures were cancelled by an error, which may have been thrown since.
    const auto cancelled = std::make_exception_ptr(
        StateError("ClusterCoordinator", "a closure runs before it is fetched",
                   "another one failed, and the worker of this one is lost", ""));
    close(closure, cancelled);
  } else {
    const auto later = [&](const ClosurePtr& other) { return other->number() > closure->number(); };
    const auto successor = std::find_if(waiting_.begin(), waiting_.end(), later);
    waiting_.insert(successor, closure);
  }
  changed_.notify_all();
}

void ClosureQueue::close(const ClosurePtr& closure, std::exception_ptr error) {
  closure->stage = Closure::Stage::done;
  closure->error = std::move(error);
  closure->request.clear_arguments();
  open_.erase(closure->number());
}

void ClosureQueue::finish(const ClosurePtr& closure, int worker, ClosureValue result) {
  const std::lock_guard lock(mutex_);
  closure->result = std::move(result);
  running_.erase(closure->number());
  open_.erase(closure->number());
  closure->stage = Closure::Stage::done;
  closure->request.clear_arguments();
  ended_.push_back(closure);
  ++counts_.done;
  ++counts_.done_by_worker[static_cast<size_t>(worker)];
  changed_.notify_all();
}

void ClosureQueue::fail(const ClosurePtr& closure, std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  running_.erase(closure->number());
  close(closure, error);
  if (!error_) error_ = std::move(error);
  cancelled_ = counts_.scheduled;
  cancel([](const Closure&) { return true; }, "it was cancelled, as another one failed");
}

bool ClosureQueue::idle() const {
  const std::lock_guard lock(mutex_);
  return open_.empty();
}

void ClosureQueue::end(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!over_) over_ = std::move(error);
  changed_.notify_all();
}

}  // namespace tessera::detail
