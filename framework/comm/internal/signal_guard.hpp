#pragma once

#include <signal.h>

namespace tessera::detail {

/// Keeps signals from the calling thread, and from threads made meanwhile.
class SignalGuard {
 public:
  enum class Which { pipe, all };
  /// `pipe`: only the one that ends a process which writes to a closed socket.
  explicit SignalGuard(Which which);
  /// What came of SIGPIPE meanwhile is dropped.
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tessera::detail
