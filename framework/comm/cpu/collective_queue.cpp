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

CollectiveQueue::CollectiveQueue(std::unique_ptr<Transport> channel)
    : channel_(std::move(channel)) {}

CollectiveQueue::~CollectiveQueue() { close(); }

void CollectiveQueue::open() {
  // Signals are for the threads of the program.
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

WorkPtr CollectiveQueue::push(std::unique_ptr<CollectiveTask> op, bool brief) {
  const auto entry = std::make_shared<Entry>();
  entry->op = std::move(op);
  Lock lock(mutex_);
  check_locked();
  const bool first = entries_.empty();
  entries_.push_back(entry);
  if (first) start(lock, *entry);
  if (!first || !brief || !channel_->sends_alone()) {
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
    failure_ = CommError(channel_->name(), "the communicator was aborted", reason, "").what();
  }
  channel_->abort(reason);
  changed_.notify_all();
}

void CollectiveQueue::fail(const std::string& line) {
  {
    const Lock lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = line;
  }
  channel_->abort(line);
}

void CollectiveQueue::guard(const std::function<void()>& action) {
  check();
  try {
    const c10::InferenceMode inference;
    action();
  } catch (const CommError& error) {
    fail(error.what());
  } catch (const std::exception& error) {
    fail(CommError(channel_->name(), "a collective runs to its end", error.what(), "").what());
  } catch (...) {
    fail(CommError(channel_->name(), "a collective runs to its end", "no known exception", "")
             .what());
  }
  check();
}

void CollectiveQueue::start(Lock& lock, Entry& entry) {
  running_ = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    guard([&] { entry.op->start(); });
  } catch (const CommError&) {
    // Told to whoever waits, as the queue has ended.
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  entry.error = error;
  entry.started = true;
  running_ = false;
  // Who came meanwhile saw that one runs.
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
        if (!entry->started) entry->op->start();
        entry->op->finish();
      });
    }
  } catch (...) {
    // Not only CommError: there may be no memory for one. Nothing leaves the thread.
    error = std::current_exception();
  }
  entry->op.reset();
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
  // The threads of ATen are for the rank's own work; they are set up at the first question.
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
