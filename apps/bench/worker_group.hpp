#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/line_process.hpp"

namespace tessera::bench {

/// Single-threaded processes that work together; they find each other by RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT. Rank 0 answers.
class WorkerGroup {
 public:
  /// Starts the processes. Throws ConfigError if that fails.
  WorkerGroup(int count, const std::vector<std::string>& command);
  /// Closes their input and waits for them to exit.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Runs `steps` steps on all processes; returns rank 0's answer. Throws ConfigError if they have
  /// ended.
  Json run(int64_t steps);

 private:
  std::vector<std::unique_ptr<LineProcess>> workers_;
};

}  // namespace tessera::bench
