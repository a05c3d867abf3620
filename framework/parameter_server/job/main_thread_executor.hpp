#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace tessera::detail {

/// Queue of work from gRPC's threads for a task's main thread, the only one that computes tensors.
class MainThreadExecutor {
 public:
  using Work = std::function<void()>;
  using Predicate = std::function<bool()>;

  /// Runs `work` on the main thread and waits for it; called on a gRPC thread. Returns false if
  /// `cancelled` returned true before the work began, or if the main thread has left. `phase`: the
  /// fit that the work belongs to (0: any).
  bool run(const Work& work, const Predicate& cancelled, int phase = 0);

  /// Runs the next work of fit number `phase` (0: any); called on the main thread. Returns whether
  /// there was any within `patience`. Work of earlier fits is refused.
  bool serve_one(int phase, std::chrono::milliseconds patience);
  /// Refuses all pending and future work.
  void leave();
  /// Interrupts the wait in serve_one().
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
