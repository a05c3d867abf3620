#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera {

/// What a process is in a run. All but parameter servers and evaluators train together.
enum class TaskType { chief, worker, ps, evaluator };

/// "chief", "worker", "ps", "evaluator".
std::string to_string(TaskType type);

/// Where this process stands among those that run the same program.
struct Cluster {
  TaskType type = TaskType::worker;
  /// Among the processes that train together, chief first.
  int rank = 0;
  int size = 1;
  /// Among those on this host.
  int local_rank = 0;
  /// Where rank 0 listens.
  std::string address;
  int port = 0;
  /// What tells runs apart that share hosts; empty if nothing does.
  std::string job = {};
  /// Where this is from, as errors name it: "--coordinator", "TF_CONFIG", "DTENSOR_JOBS", "RANK",
  /// "SLURM_PROCID"; empty: nothing says so, and the process is alone.
  std::string source = {};
  /// "host:port" of all tasks by type, from TF_CONFIG.
  std::vector<std::pair<TaskType, std::vector<std::string>>> tasks = {};
  /// What its processes prove to each other that they know, 32 characters at least; empty: that of
  /// TESSERA_SECRET, or of the file that TESSERA_SECRET_FILE names.
  std::string secret = {};
  /// Whether without a secret this process may listen beyond its host, for whoever comes.
  bool insecure = false;
};

/// What the command line says; empty and -1: nothing.
struct ClusterFlags {
  std::string coordinator;  ///< "host:port"
  int rank = -1;
  int size = -1;
  bool insecure = false;  ///< see Cluster::insecure
};

namespace detail {

/// Value of an environment variable; null if there is none.
using EnvironmentLookup = std::function<const char*(const char* name)>;

}  // namespace detail

/// Finds the cluster from, in this order: flags, TF_CONFIG (cluster and task, types chief, worker,
/// ps and evaluator), DTENSOR_JOBS with DTENSOR_CLIENT_ID, RANK with WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT (LOCAL_RANK), Slurm's variables of a job of more than one task; else this process is
/// alone. Throws ConfigError naming flag, variable or key for what is missing, malformed, repeated
/// or out of range.
Cluster find_cluster(const ClusterFlags& flags = {},
                     const detail::EnvironmentLookup& environment = {});

}  // namespace tessera
