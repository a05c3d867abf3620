#pragma once

#include <signal.h>

#include <string>

namespace tessera {

/// While alive, the first SIGTERM or SIGINT does not end the process but is recorded for
/// stop_signal(), for loops that can save and exit; a second signal of the same kind ends the
/// process at once. The destructor restores the former handlers.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction before_[2];
};

namespace detail {

/// Returns the signal that asked this process to stop; 0: none. Thread-safe.
int stop_signal();

/// Clears the recorded signal.
void clear_stop_signal();

/// Returns the name of a signal, such as "SIGKILL".
std::string signal_name(int signal);

}  // namespace detail

}  // namespace tessera
