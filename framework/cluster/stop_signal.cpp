#include <tessera/framework/cluster/stop_signal.hpp>

#include <string.h>

#include <atomic>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int signals[] = {SIGTERM, SIGINT};
std::atomic<int> first{0};
std::atomic<bool> seen[] = {false, false};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not lock");

void on_signal(int signal) {
  if (seen[signal == SIGINT].exchange(true)) {
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
    raise(signal);  // delivered when this handler returns
    return;
  }
  int none = 0;
  first.compare_exchange_strong(none, signal);
}

}  // namespace

StopSignals::StopSignals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &before_[i], nullptr);
}

int detail::stop_signal() { return first; }

void detail::clear_stop_signal() {
  first = 0;
  for (std::atomic<bool>& flag : seen) flag = false;
}

std::string detail::signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? str("signal ", signal) : str("SIG", name);
}

}  // namespace tessera
