#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <tessera/framework/cluster/internal/free_port.hpp>

namespace tessera::detail {

/// Exit code of a process that failed because another one did, or that could not join the run. It
/// is reported as the first to fail only if no process failed with another code.
inline constexpr int exit_of_lost_run = 3;

struct LaunchOptions {
  /// number of ranks; in a parameter server job, of workers
  int processes = 1;
  /// number of parameter servers; if not 0, there is also a chief
  int servers = 0;
  /// whether a parameter server job has an evaluator
  bool evaluator = false;
  /// whether ranks find each other by TF_CONFIG, as its workers
  bool tf_config = false;
  /// whether the processes encrypt what they send each other; see Cluster::encrypt
  bool encrypt = false;
  /// how often all processes are restarted after a failure; workers and the evaluator of a
  /// parameter server job are restarted alone
  int max_restarts = 0;
  /// limits of an elastic run, whose processes come and go; 0: the processes stay the same. Each
  /// that fails is restarted alone, up to max_restarts times, and joins as a newcomer
  int min_processes = 0;
  int max_processes = 0;
  /// time for the other processes to exit after a failure: before SIGTERM, and from SIGTERM to
  /// SIGKILL
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  std::chrono::milliseconds kill_after = std::chrono::seconds(5);
};

/// Resolves a program's name: a path, a program in `folder`, or one in PATH. Throws ConfigError if
/// it is not found or not executable.
std::string find_program(const std::string& name, const std::string& folder);

/// Runs `command` (the program's path and its arguments) as several processes on this machine,
/// which find each other by RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, or by
/// TF_CONFIG. Also sets TESSERA_JOB and TESSERA_SECRET to new values, TESSERA_ENCRYPT to 1 if
/// processes are to encrypt, TESSERA_RESTART to how often the process was restarted and, unless it
/// is set, OMP_NUM_THREADS to the process' share of the cores. Output is forwarded in complete
/// lines to the stream it was written to, prefixed with
/// "[rank] "; in a parameter server job with "[chief] ", "[worker 0] ", "[ps 1] " or "[evaluator]
/// ".
///
/// If a process fails, the others are ended and the first to fail is reported. In a parameter
/// server job this holds for the chief, any ps and the last worker; when another worker or the
/// evaluator fails, the job continues while it is restarted, or without it. The job ends when the
/// chief exits with 0.
///
/// Holds the register of members of an elastic run, whose processes find it by TESSERA_MEMBERS
/// instead of each other by RANK. The run ends when a member tells that it is
/// complete, or when too few processes are left to reach min_processes.
///
/// SIGTERM, SIGINT and SIGHUP are forwarded to all processes (in a parameter server job to the
/// chief and the evaluator) and end the run; a second signal kills. No process outlives the call.
/// Returns 0, the exit code of the first process that failed, or 128 + the signal that killed it or
/// stopped the run. Throws ConfigError if the program cannot be started. Must be called from the
/// only thread of a process.
int launch(const std::vector<std::string>& command, const LaunchOptions& options = {});

}  // namespace tessera::detail
