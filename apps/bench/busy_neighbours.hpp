#pragma once

#include <sys/types.h>

#include <vector>

namespace tessera::bench {

/// Programs that never rest while this is alive, as other users of a machine have them, each in a
/// session of its own. Where Linux shares the processor among sessions
/// (kernel.sched_autogroup_enabled) each gets as much as we do, however niced.
class BusyNeighbours {
 public:
  /// `niceness` from 0 to 19, the least priority. Throws ConfigError if none can be started.
  BusyNeighbours(unsigned count, int niceness);
  ~BusyNeighbours();
  BusyNeighbours(const BusyNeighbours&) = delete;
  BusyNeighbours& operator=(const BusyNeighbours&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace tessera::bench
