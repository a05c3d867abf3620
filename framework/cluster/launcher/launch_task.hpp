#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::detail {

/// A process that launch() starts: one of equal ranks, or a task of a parameter server job.
struct LaunchTask {
  /// "rank", or the type that TF_CONFIG has for it.
  std::string type;
  /// Among those of its type.
  int index = 0;
  /// Whether it is started again alone, and the others go on without it.
  bool expendable = false;
  /// How often it was started before.
  int restarts = 0;
  std::map<std::string, std::string> environment;

  /// "rank 2", "worker 0", "chief".
  std::string name() const;
  /// What stands before its lines: "2", "worker 0", "chief".
  std::string label() const;
};

/// The tasks of the n-th start, 0 the first, with ports and a name of the job of their own.
std::vector<LaunchTask> launch_tasks(const LaunchOptions& options, int restart);

/// "ranks 0 and 1", "chief, worker 1 and ps 0".
std::string names_of(const std::vector<LaunchTask>& tasks);

}  // namespace tessera::detail
