#pragma once

#include <rpc/parameter_server.pb.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include <tessera/framework/parameter_server/closure.hpp>

namespace tessera::detail {

/// A scheduled call of a registered function.
struct Closure {
  enum class Stage { waiting, running, done };
  rpc::RunRequest request;  ///< without its `done_below`
  Stage stage = Stage::waiting;
  bool begun = false;                  ///< whether it was ever started on a worker
  strategy::ClosureValue result = {};  ///< valid in stage `done` without an error
  std::exception_ptr error = {};       ///< why there is no result
  int64_t number() const { return request.closure(); }
};
using ClosurePtr = std::shared_ptr<Closure>;

/// The coordinator's FIFO queue of closures: the program adds them and waits for them, and one
/// thread per worker takes them. Thread-safe.
class ClosureQueue {
 public:
  explicit ClosureQueue(int workers);

  // For the program. All throw the error that ended the job.

  /// Numbers a closure and queues it. Throws the error of an earlier closure.
  ClosurePtr add(rpc::RunRequest request);
  /// Waits for all closures. Throws the first error since the last call that threw one.
  void join();
  bool done();
  /// Waits for the next closure to end; null if none is left. Throws like join().
  ClosurePtr next_done();
  /// Cancels the closures that have not started; returns how many.
  int64_t cancel_waiting();
  /// Waits for one closure; throws its error.
  const strategy::ClosureValue& wait(const ClosurePtr& closure);
  bool ready(const ClosurePtr& closure) const;
  struct Counts {
    int64_t scheduled = 0, done = 0, rescheduled = 0;
    std::vector<int64_t> done_by_worker;
  };
  Counts counts() const;

  // For workers' threads.

  /// Takes the next closure; waits until there is one and `may` returns true. Null on `stop`.
  ClosurePtr take(const std::function<bool()>& may, const std::stop_token& stop);
  /// Makes take() evaluate `may` again.
  void wake();
  /// Returns the number below which all closures have ended.
  int64_t done_below() const;
  /// Returns a closure whose worker is lost to the queue, by its number.
  void requeue(const ClosurePtr& closure);
  void finish(const ClosurePtr& closure, int worker, strategy::ClosureValue result);
  void fail(const ClosurePtr& closure, std::exception_ptr error);

  /// Whether no closure is waiting or running.
  bool idle() const;
  /// Ends the job: no closure starts any more, and all waiting calls throw `error`.
  void end(std::exception_ptr error);

 private:
  void close(const ClosurePtr& closure, std::exception_ptr error);
  int64_t cancel(const std::function<bool(const Closure&)>& which, const std::string& why);
  void throw_if_ended() const;
  void throw_error();

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<ClosurePtr> waiting_;
  std::deque<ClosurePtr> ended_;  ///< not yet returned by next_done()
  std::set<int64_t> open_;        ///< numbers of waiting and running closures
  std::set<int64_t> running_;
  int64_t cancelled_ = 0;  ///< closures up to this number are not restarted, as another one failed
  std::exception_ptr error_, over_;
  Counts counts_;
};

}  // namespace tessera::detail
