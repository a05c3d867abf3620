#pragma once

#include <sys/types.h>

#include <vector>

namespace tessera::bench {

/// Busy loops that run during this object's lifetime, like programs of other users of the machine,
/// each in its own session. If Linux shares processors among sessions
/// (kernel.sched_autogroup_enabled), each gets as much time as this program, whatever its niceness.
class BusyLoops {
 public:
  /// `niceness` is 0 to 19 (lowest priority). Throws ConfigError if they cannot be started.
  BusyLoops(unsigned count, int niceness);
  ~BusyLoops();
  BusyLoops(const BusyLoops&) = delete;
  BusyLoops& operator=(const BusyLoops&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace tessera::bench
