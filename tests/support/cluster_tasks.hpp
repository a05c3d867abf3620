#pragma once

#include <string>
#include <vector>

#include "tests/support/processes.hpp"

namespace tessera::test {

/// The tasks of a cluster.
struct ClusterShape {
  bool chief = true;
  int workers = 2;
  int servers = 2;
  bool evaluator = false;
};

/// Processes of one program that find each other by TF_CONFIG.
class ClusterTasks : public ProcessGroup {
 public:
  /// Starts all tasks except those in `later`, which restart() starts. Throws std::runtime_error on
  /// failure.
  ClusterTasks(const ClusterShape& shape, const std::filesystem::path& program,
               const std::vector<std::string>& arguments, const Variables& environment = {},
               const std::vector<std::string>& later = {});

  /// Returns the process number of a task: "chief", "worker 0", "ps 1", "evaluator".
  int number(const std::string& task) const;
  std::string address(const std::string& task) const;
  int port(const std::string& task) const { return ports_[static_cast<size_t>(number(task))]; }
  void signal(const std::string& task, int signal) const;
  /// Sends SIGKILL and waits for the end.
  void kill(const std::string& task);
  /// Starts the task on its port, with TESSERA_RESTART if it ran before.
  void restart(const std::string& task);
  bool writes(const std::string& task, const std::string& text, std::chrono::milliseconds patience);
  std::string text(const std::string& task) const;
  /// Waits until all tasks have ended except those in `without`, which continue; kills the rest
  /// after `patience`.
  void wait_all(std::chrono::milliseconds patience, const std::vector<std::string>& without = {});
  /// Waits for the task's end and returns how it ended.
  const RankEnd& end(const std::string& task, std::chrono::milliseconds patience);
  const std::vector<std::string>& tasks() const { return tasks_; }

 private:
  std::string tf_config(size_t number) const;

  std::filesystem::path program_;
  std::vector<std::string> arguments_;
  Variables environment_;
  std::vector<std::string> tasks_;
  std::vector<int> ports_;
  std::vector<int> starts_;
};

}  // namespace tessera::test
