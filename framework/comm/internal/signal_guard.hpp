#pragma once

#include <signal.h>

namespace tessera::detail {

/// While alive, blocks signals in the calling thread and in threads that it creates.
class SignalGuard {
 public:
  enum class Which { pipe, all };
  /// `pipe` blocks SIGPIPE only, which a write to a closed socket raises.
  explicit SignalGuard(Which which);
  /// Discards pending SIGPIPEs and restores the signal mask.
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tessera::detail
