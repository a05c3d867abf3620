#pragma once

#include <signal.h>

#include <string>

namespace tessera {

/// While one lives, SIGTERM and SIGINT end nothing: the first is kept for stop_signal(), for loops
/// that can save and leave; a second one of the same kind ends the process at once. What was before
/// is restored at the end.
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

/// The signal that asked this process to stop; 0 if none did. May be called from any thread.
int stop_signal();

/// Forgets the signal, for what starts anew.
void clear_stop_signal();

/// "SIGKILL".
std::string signal_name(int signal);

}  // namespace detail

}  // namespace tessera
