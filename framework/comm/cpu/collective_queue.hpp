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

/// Runs the collectives of a rank one after the other: on its own thread, or on the waiting thread
/// if its own has not begun yet. The first failure ends the queue.
class CollectiveQueue final : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  explicit CollectiveQueue(std::unique_ptr<Transport> transport);
  ~CollectiveQueue();
  Transport& transport() { return *transport_; }

  /// Starts the thread.
  void open();
  /// Ends the thread; unfinished collectives fail.
  void close();
  /// Appends a collective, and starts it before returning if the queue was empty. A `brief` one may
  /// be left for the waiting thread to run. Throws CommError once the queue has ended.
  WorkPtr push(std::unique_ptr<CollectiveTask> task, bool brief);
  /// Throws CommError once the queue has ended.
  void check();
  /// Makes current and future collectives throw CommError with `reason`. It replaces an earlier
  /// failure, since it explains more.
  void abort(const std::string& reason);
  /// Ends the queue with the line of an error, unless it has ended.
  void fail(const std::string& line);

 private:
  struct Entry {
    std::unique_ptr<CollectiveTask> task;
    bool started = false;
    bool done = false;
    std::exception_ptr error;  ///< null if it succeeded
  };
  using EntryPtr = std::shared_ptr<Entry>;
  using Lock = std::unique_lock<std::mutex>;
  class QueuedWork;

  void serve();
  /// Runs an action on the transport; an exception of it ends the queue. Throws CommError.
  void guard(const std::function<void()>& action);
  void wait(const EntryPtr& entry);
  /// start() and run_front() release the lock while they work.
  void start(Lock& lock, Entry& entry);
  void run_front(Lock& lock);
  void check_locked() const;

  std::unique_ptr<Transport> transport_;
  std::mutex mutex_;
  std::condition_variable wake_, changed_;
  std::deque<EntryPtr> entries_;
  bool running_ = false;  ///< whether a collective is running
  bool urgent_ = false;   ///< whether the thread shall run the entries, without a waiter
  bool closed_ = false;
  std::string failure_;  ///< line of the error that ended the queue
  std::thread thread_;
};

}  // namespace tessera::detail
