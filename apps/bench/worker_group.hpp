#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/line_process.hpp"

namespace tessera::bench {

/// Single-threaded processes that work together; they find each other by RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT, or, in an elastic run, by a register. The one with LOCAL_RANK 0
/// answers.
class WorkerGroup {
 public:
  /// Starts the processes. Throws ConfigError if that fails.
  WorkerGroup(int count, const std::vector<std::string>& command, bool elastic = false);
  /// Closes their input and waits for them to exit.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Runs `steps` steps on all processes; returns the answer. Throws ConfigError if they have
  /// ended.
  Json run(int64_t steps);

 private:
  class Register;
  std::unique_ptr<Register> register_;  ///< that of an elastic run
  std::vector<std::unique_ptr<LineProcess>> workers_;
};

}  // namespace tessera::bench
