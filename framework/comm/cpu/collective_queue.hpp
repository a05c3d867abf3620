#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <tessera/framework/comm/cpu/collective_task.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {

/// Runs the collectives of a rank one after the other: on a thread of its own, or on the one that
/// waits for them where that thread has not begun yet. The first failure ends it.
class CollectiveQueue final : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  explicit CollectiveQueue(std::unique_ptr<Transport> channel);
  ~CollectiveQueue();
  Transport& channel() { return *channel_; }

  /// Starts the thread.
  void open();
  /// Ends it; what is under way fails.
  void close();
  /// Adds a collective, begun before this returns if none is before it. One that is `brief` may
  /// wait for its waiter. Throws CommError once the queue has ended.
  WorkPtr push(std::unique_ptr<CollectiveTask> op, bool brief);
  /// Throws CommError once the queue has ended.
  void check();
  /// Makes collectives under way and to come throw CommError with `reason`, which tells more than
  /// an earlier failure that it takes the place of.
  void abort(const std::string& reason);

 private:
  struct Entry {
    std::unique_ptr<CollectiveTask> op;
    bool started = false;
    bool done = false;
    std::exception_ptr error;  ///< what it ended with
  };
  using EntryPtr = std::shared_ptr<Entry>;
  using Lock = std::unique_lock<std::mutex>;
  class QueuedWork;

  void serve();
  /// Runs something that uses the channel; what it throws ends the queue. Throws CommError.
  void guard(const std::function<void()>& action);
  void wait(const EntryPtr& entry);
  /// start() and run_front() do their work without the lock.
  void start(Lock& lock, Entry& entry);
  void run_front(Lock& lock);
  void check_locked() const;
  void fail(const std::string& line);

  std::unique_ptr<Transport> channel_;
  std::mutex mutex_;
  std::condition_variable wake_, changed_;
  std::deque<EntryPtr> entries_;
  bool running_ = false;  ///< a collective runs now
  bool urgent_ = false;   ///< the thread is to run what there is
  bool closed_ = false;
  std::string failure_;  ///< line of the error that ended the queue
  std::thread thread_;
};

}  // namespace tessera::detail
