#include <tessera/framework/comm/cpu/collective_queue.hpp>

#include <exception>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/signal_guard.hpp>

namespace tessera::detail {

class CollectiveQueue::QueuedWork final : public Work {
 public:
  QueuedWork(std::shared_ptr<CollectiveQueue> queue, EntryPtr entry)
      : queue_(std::move(queue)), entry_(std::move(entry)) {}
  void wait() override { queue_->wait(entry_); }
  bool done() const override {
    const Lock lock(queue_->mutex_);
    return entry_->done;
  }

 private:
  std::shared_ptr<CollectiveQueue> queue_;
  EntryPtr entry_;
};

CollectiveQueue::CollectiveQueue(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)) {}

CollectiveQueue::~CollectiveQueue() { close(); }

void CollectiveQueue::open() {
  // The program's own threads handle signals.
  const SignalGuard guard(SignalGuard::Which::all);
  thread_ = std::thread([this] { serve(); });
}

void CollectiveQueue::close() {
  bool unfinished = false;
  {
    const Lock lock(mutex_);
    closed_ = true;
    unfinished = !entries_.empty();
  }
  if (unfinished) abort("the communicator was destroyed");
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

WorkPtr CollectiveQueue::push(std::unique_ptr<CollectiveTask> task, bool brief) {
  const auto entry = std::make_shared<Entry>();
  entry->task = std::move(task);
  Lock lock(mutex_);
  check_locked();
  const bool first = entries_.empty();
  entries_.push_back(entry);
  if (first) start(lock, *entry);
  if (!first || !brief || !transport_->sends_in_background()) {
    urgent_ = true;
    wake_.notify_one();
  }
  return std::make_shared<QueuedWork>(shared_from_this(), entry);
}

void CollectiveQueue::check() {
  const Lock lock(mutex_);
  check_locked();
}

void CollectiveQueue::check_locked() const {
  if (!failure_.empty()) throw CommError(failure_);
}

void CollectiveQueue::abort(const std::string& reason) {
  {
    const Lock lock(mutex_);
    failure_ = CommError(transport_->name(), "the communicator was aborted", reason, "").what();
  }
  transport_->abort(reason);
  changed_.notify_all();
}

void CollectiveQueue::fail(const std::string& line) {
  {
    const Lock lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = line;
  }
  transport_->abort(line);
}

void CollectiveQueue::guard(const std::function<void()>& action) {
  check();
  try {
    const c10::InferenceMode inference;
    action();
  } catch (const CommError& error) {
    fail(error.what());
  } catch (const std::exception& error) {
    fail(CommError(transport_->name(), "a collective completes", error.what(), "").what());
  } catch (...) {
    fail(
        CommError(transport_->name(), "a collective completes", "an unknown exception", "").what());
  }
  check();
}

void CollectiveQueue::start(Lock& lock, Entry& entry) {
  running_ = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    guard([&] { entry.task->start(); });
  } catch (const CommError&) {
    // The queue has ended: whoever waits gets the error from run_front().
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  entry.error = error;
  entry.started = true;
  running_ = false;
  // Threads that came meanwhile wait because running_ was set.
  changed_.notify_all();
  if (urgent_ || closed_) wake_.notify_one();
}

void CollectiveQueue::run_front(Lock& lock) {
  const EntryPtr entry = entries_.front();
  running_ = true;
  lock.unlock();
  std::exception_ptr error = entry->error;
  try {
    if (!error) {
      guard([&] {
        if (!entry->started) entry->task->start();
        entry->task->finish();
      });
    }
  } catch (...) {
    // Not only CommError: creating one may throw std::bad_alloc. No exception may leave the thread.
    error = std::current_exception();
  }
  entry->task.reset();
  lock.lock();
  entry->error = error;
  entry->done = true;
  entries_.pop_front();
  if (entries_.empty()) urgent_ = false;
  running_ = false;
  changed_.notify_all();
  wake_.notify_one();
}

void CollectiveQueue::wait(const EntryPtr& entry) {
  Lock lock(mutex_);
  while (!entry->done) {
    if (running_) {
      changed_.wait(lock);
    } else {
      run_front(lock);
    }
  }
  if (entry->error) std::rethrow_exception(entry->error);
}

void CollectiveQueue::serve() {
  // ATen's threads are for the rank's own work: set them up (the first query does), then limit this
  // thread to one.
  at::get_num_threads();
  omp_set_num_threads(1);
  Lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return !running_ && (closed_ || (urgent_ && !entries_.empty())); });
    if (entries_.empty()) return;
    run_front(lock);
  }
}

}  // namespace tessera::detail
