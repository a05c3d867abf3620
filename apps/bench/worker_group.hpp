#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera::bench {

/// Processes that find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, one thread
/// each, and work when told to: each reads the number of steps from a line of its input, and rank 0
/// answers with a line of JSON. Between lines they sleep.
class WorkerGroup {
 public:
  /// Starts them. Throws ConfigError if that fails.
  WorkerGroup(int count, const std::vector<std::string>& command);
  /// Ends their input and waits for them.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Lets all make so many steps; rank 0's answer. Throws ConfigError if they have ended.
  Json run(int64_t steps);

 private:
  struct Worker {
    pid_t pid = 0;
    FILE* in = nullptr;
    FILE* out = nullptr;  ///< of rank 0 only
  };
  Worker start(int rank, int count, int port);

  std::vector<std::string> command_;
  std::vector<Worker> workers_;
};

}  // namespace tessera::bench
