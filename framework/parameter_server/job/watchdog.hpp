#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace tessera::detail {

/// Ends calls of gRPC that wait for somebody who is silent: one thread that looks at them now and
/// then.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();

  /// While alive, `end` is called, from another thread and once, when the last heard() is longer
  /// ago than the limit.
  class Call {
   public:
    Call(Watchdog& watch, std::chrono::milliseconds limit, std::function<void()> end);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    void heard();
    /// Sets another limit from now on.
    void set_limit(std::chrono::milliseconds limit);
    /// Whether it was ended so.
    bool ended() const;

   private:
    friend class Watchdog;
    Watchdog& watch_;
    std::chrono::milliseconds limit_;
    std::function<void()> end_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    bool ended_ = false;
  };

 private:
  void look();

  mutable std::mutex mutex_;
  std::list<Call*> calls_;
  /// Last, so that it is joined before what it uses goes.
  std::jthread thread_;
};

}  // namespace tessera::detail
