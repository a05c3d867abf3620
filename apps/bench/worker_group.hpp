#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/line_process.hpp"

namespace tessera::bench {

/// Processes that find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, one thread
/// each, which work together; rank 0 answers.
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
  std::vector<std::unique_ptr<LineProcess>> workers_;
};

}  // namespace tessera::bench
