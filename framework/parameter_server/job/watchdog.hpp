#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace tessera::detail {

/// Cancels gRPC calls whose peer has sent nothing for too long; one thread polls all deadlines.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();

  /// A monitored call: `end` is called once, on another thread, if reset_deadline() was not called
  /// for longer than the limit.
  class Call {
   public:
    Call(Watchdog& watch, std::chrono::milliseconds limit, std::function<void()> end);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Restarts the deadline.
    void reset_deadline();
    /// Changes the limit.
    void set_limit(std::chrono::milliseconds limit);
    /// Whether the deadline was missed, so that `end` was called.
    bool ended() const;

   private:
    friend class Watchdog;
    Watchdog& watch_;
    std::chrono::milliseconds limit_;
    std::function<void()> end_;
    std::chrono::steady_clock::time_point last_reset_ = std::chrono::steady_clock::now();
    bool ended_ = false;
  };

 private:
  void check_deadlines();

  mutable std::mutex mutex_;
  std::list<Call*> calls_;
  /// Last member, so that it is joined before the members it uses are destroyed.
  std::jthread thread_;
};

}  // namespace tessera::detail
