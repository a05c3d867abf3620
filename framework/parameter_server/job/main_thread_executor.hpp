#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace tessera::detail {

/// Work that gRPC's threads have for the main thread of a task, which does it one piece after the
/// other while it serves: tensors are computed there alone.
class MainThreadExecutor {
 public:
  using Work = std::function<void()>;
  using Asked = std::function<bool()>;

  /// Has the main thread do the work and waits for it, on a thread of gRPC's: true once it is done;
  /// false if `cancelled` says so before it has begun, or the main thread has left for good.
  /// `phase`: of which fit it is; 0: of any.
  bool run(const Work& work, const Asked& cancelled, int phase = 0);

  /// Does, on the main thread, the next piece of fit number `phase` (0: of any), and returns
  /// whether there was one within `patience`. Work of fits that are over is refused.
  bool serve_one(int phase, std::chrono::milliseconds patience);
  /// Nothing will be done any more.
  void leave();
  /// Ends the wait in serve_one().
  void wake();

 private:
  enum class Stage { waiting, running, done, refused };
  struct Entry {
    const Work* work;
    int phase;
    Stage stage = Stage::waiting;
  };
  std::list<Entry*>::iterator find(int phase);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry*> entries_;
  bool left_ = false;
  bool woken_ = false;
};

}  // namespace tessera::detail
