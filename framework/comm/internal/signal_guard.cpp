#include <tessera/framework/comm/internal/signal_guard.hpp>

#include <ctime>

namespace tessera::detail {

SignalGuard::SignalGuard(Which which) {
  sigset_t blocked;
  if (which == Which::all) {
    sigfillset(&blocked);
  } else {
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SignalGuard::~SignalGuard() {
  if (sigismember(&before_, SIGPIPE) == 0) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec now{};
    while (sigtimedwait(&pipe, nullptr, &now) > 0) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace tessera::detail
