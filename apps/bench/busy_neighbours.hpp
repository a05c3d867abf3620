#pragma once

#include <sys/types.h>

#include <vector>

namespace tessera::bench {

/// Programs that never rest while this is alive, as other users of a machine have them: as many as
/// there are processors, with the least priority, each in a session of its own. Where Linux shares
/// the processor among sessions (kernel.sched_autogroup_enabled) each gets as much as we do all the
/// same, else next to nothing.
class BusyNeighbours {
 public:
  /// Throws ConfigError if a process cannot be started.
  BusyNeighbours();
  ~BusyNeighbours();
  BusyNeighbours(const BusyNeighbours&) = delete;
  BusyNeighbours& operator=(const BusyNeighbours&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace tessera::bench
