#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tessera::detail {

/// What a process ends with that failed because another one did, or because it could not join the
/// others. Such a process is not the first to fail while there is one that ended otherwise.
inline constexpr int exit_of_lost_run = 3;

struct LaunchOptions {
  /// Ranks; beside parameter servers, workers.
  int processes = 1;
  /// Parameter servers; with them there is a chief, too.
  int servers = 0;
  /// Whether a parameter server job has an evaluator.
  bool evaluator = false;
  /// Whether ranks find each other by TF_CONFIG, as its workers.
  bool tf_config = false;
  /// How often all processes are started again after one failed; workers and evaluator of a
  /// parameter server job: alone.
  int max_restarts = 0;
  /// How long the others may take to leave after one failed, before SIGTERM, and after that.
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  std::chrono::milliseconds kill_after = std::chrono::seconds(5);
};

/// The program that `name` means: a path, else a program in `folder`, else one in PATH. Throws
/// ConfigError if it is none that can be run.
std::string find_program(const std::string& name, const std::string& folder);

/// TCP ports of 127.0.0.1 that nobody listens on, all different. Throws ConfigError if there are
/// none.
std::vector<int> free_ports(int count);
int free_port();

/// Runs `command`, of which the first word is the program's path, as processes of this machine that
/// find each other by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or by TF_CONFIG.
/// TESSERA_JOB and TESSERA_SECRET are theirs alone, TESSERA_RESTART counts how often each was
/// started again, and OMP_NUM_THREADS shares the cores out among `processes` unless it is set.
/// Every line that they write comes out whole behind "[rank] ", on the stream it was written to; a
/// parameter server job's behind "[chief] ", "[worker 0] ", "[ps 1] ", "[evaluator] ".
///
/// Where one fails the others are ended, and the one that failed first is named. In a parameter
/// server job this goes for chief and ps, and the last worker; the job goes on while a worker or
/// the evaluator is started again, or without it. The end of the chief with 0 ends the job.
///
/// The same, once each, for SIGTERM, SIGINT and SIGHUP, which the processes receive too, of a
/// parameter server job the chief and the evaluator: the second one kills. No process of theirs
/// outlives the call. Returns 0, the exit code of the one that failed first, or 128 + the signal
/// that ended it or this process. Throws ConfigError if the program cannot be started. To be called
/// from the only thread of a process.
int launch(const std::vector<std::string>& command, const LaunchOptions& options = {});

}  // namespace tessera::detail
