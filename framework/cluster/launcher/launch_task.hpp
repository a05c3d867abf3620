#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::detail {

/// A process that launch() starts: a rank, a member of an elastic run, or a task of a parameter
/// server job.
struct LaunchTask {
  /// "rank", "member", or its type in TF_CONFIG
  std::string type;
  /// index among the tasks of its type
  int index = 0;
  /// whether it is restarted alone, and the others can continue without it
  bool expendable = false;
  /// number of earlier starts
  int restarts = 0;
  std::map<std::string, std::string> environment;

  /// Returns "rank 2", "member 2", "worker 0" or "chief".
  std::string name() const;
  /// Returns the prefix of its output lines: "2", "worker 0" or "chief".
  std::string label() const;
};

/// Returns the tasks of attempt number `restart` (from 0), with new ports and a new job name.
std::vector<LaunchTask> launch_tasks(const LaunchOptions& options, int restart);

/// Returns "ranks 0 and 1", or "chief, worker 1 and ps 0".
std::string names_of(const std::vector<LaunchTask>& tasks);

}  // namespace tessera::detail
