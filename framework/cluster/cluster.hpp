#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>

namespace tessera {

/// Role of a process in a run. All but parameter servers and evaluators train together.
enum class TaskType { chief, worker, ps, evaluator };

/// Returns "chief", "worker", "ps" or "evaluator".
std::string to_string(TaskType type);

/// The processes that run the same program, and this process' position among them.
struct Cluster {
  TaskType type = TaskType::worker;
  /// rank among the processes that train together; the chief is first
  int rank = 0;
  int size = 1;
  /// rank among the processes on this host
  int local_rank = 0;
  /// host name or IP address on which rank 0 listens
  std::string address;
  int port = 0;
  /// name that distinguishes runs on the same hosts (default: none)
  std::string job = {};
  /// source of this description, for errors: "--coordinator", "TF_CONFIG", "DTENSOR_JOBS", "RANK",
  /// "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PET_NODE_RANK", "JOB_COMPLETION_INDEX", "SLURM_PROCID";
  /// empty: no source, a single process
  std::string source = {};
  /// "host:port" of all tasks by type, from TF_CONFIG
  std::vector<std::pair<TaskType, std::vector<std::string>>> tasks = {};
  /// shared secret by which processes authenticate each other, at least 32 characters (default:
  /// TESSERA_SECRET, or the content of the file named by TESSERA_SECRET_FILE; without them,
  /// find_cluster() takes the one that rank 0 draws where the launcher has PMIx)
  std::string secret = {};
  /// whether this process may listen beyond its host without a secret, so that anyone may connect
  bool insecure = false;
  /// whether the processes encrypt what they send each other beyond a host, which needs a secret.
  /// NCCL does not encrypt: GPUs of several hosts are then refused
  bool encrypt = false;
};

/// Command line flags; empty or -1: not given.
struct ClusterFlags {
  std::string coordinator;  ///< "host:port"
  int rank = -1;
  int size = -1;
  bool insecure = false;  ///< see Cluster::insecure
  bool encrypt = false;   ///< see Cluster::encrypt
};

/// Returns the value of an environment variable; null if it is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Finds the cluster from the first source present: flags; TF_CONFIG (cluster and task, types
/// chief, worker, ps and evaluator); DTENSOR_JOBS with DTENSOR_CLIENT_ID; RANK with WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT (LOCAL_RANK); mpirun's OMPI_COMM_WORLD_RANK, or PMIX_RANK; Kubeflow
/// Trainer's PET_NODE_RANK with PET_NNODES and PET_MASTER_ADDR; JOB_COMPLETION_INDEX of Kubernetes
/// with WORLD_SIZE and MASTER_ADDR; Slurm's variables of a job with several tasks. Without any
/// source the process is alone. mpirun's and srun's processes agree on what is missing by PMIx: the
/// first call then waits for the same call of all processes.
///
/// Throws ConfigError naming the flag, variable or key that is missing, malformed, repeated or out
/// of range, and for several processes of a launcher whose variables are not read, such as
/// MPICH's; CommError if PMIx fails.
Cluster find_cluster(const ClusterFlags& flags = {}, const EnvironmentLookup& environment = {});

}  // namespace tessera
