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

/// A call of a registered function that the coordinator wants made.
struct Closure {
  enum class Stage { waiting, running, done };
  rpc::RunRequest request;  ///< without its `done_below`
  Stage stage = Stage::waiting;
  bool begun = false;                  ///< on some worker, once
  strategy::ClosureValue result = {};  ///< what came of it, in stage `done`
  std::exception_ptr error = {};       ///< why there is no result
  int64_t number() const { return request.closure(); }
};
using ClosurePtr = std::shared_ptr<Closure>;

/// The coordinator's closures, first in, first out: the program puts them in and waits for them,
/// one thread for each worker takes them. Safe to call from any thread.
class ClosureQueue {
 public:
  explicit ClosureQueue(int workers);

  // For the program. All throw what ended the job.

  /// Numbers it and puts it at the end. Throws the error of an earlier one.
  ClosurePtr add(rpc::RunRequest request);
  /// Waits for all. Throws the first error since the last call that threw one.
  void join();
  bool done();
  /// The next of those that have ended; null if none is left. Throws as join().
  ClosurePtr next_done();
  /// Takes back those that have not begun; returns how many.
  int64_t cancel_waiting();
  /// Waits for one; throws its error.
  const strategy::ClosureValue& wait(const ClosurePtr& closure);
  bool ready(const ClosurePtr& closure) const;
  struct Counts {
    int64_t scheduled = 0, done = 0, rescheduled = 0;
    std::vector<int64_t> done_by_worker;
  };
  Counts counts() const;

  // For workers' threads.

  /// Waits for the next one, while `may` says that the worker can take it; null on `stop`.
  ClosurePtr take(const std::function<bool()>& may, const std::stop_token& stop);
  /// `may` has changed.
  void wake();
  /// All closures of lower numbers have ended.
  int64_t done_below() const;
  /// Puts a closure whose worker is lost to the front.
  void put_back(const ClosurePtr& closure);
  void finish(const ClosurePtr& closure, int worker, strategy::ClosureValue result);
  void fail(const ClosurePtr& closure, std::exception_ptr error);

  /// Whether no closure waits or runs.
  bool idle() const;
  /// The job is over: nothing begins any more, and whoever waits is thrown `error`.
  void end(std::exception_ptr error);

 private:
  void close(const ClosurePtr& closure, std::exception_ptr error);
  int64_t cancel(const std::function<bool(const Closure&)>& which, const std::string& why);
  void throw_if_ended() const;
  void throw_error();

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<ClosurePtr> waiting_;
  std::deque<ClosurePtr> ended_;  ///< not given by next_done() yet
  std::set<int64_t> open_;        ///< numbers of those that wait or run
  std::set<int64_t> running_;
  int64_t cancelled_ = 0;  ///< up to this number none begins again, as another one failed
  std::exception_ptr error_, over_;
  Counts counts_;
};

}  // namespace tessera::detail
