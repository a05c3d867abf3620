#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::detail {

/// Address on which a process listens.
struct HostPort {
  std::string host;
  int port = 0;
};

/// Parses "host:port" or "[::1]:port". Throws ConfigError naming `where`.
HostPort read_host_port(const std::string& where, const std::string& text);

/// Whether a host name or IP address is a loopback address.
bool is_loopback(const std::string& host);

/// Parses an integer in [minimum, maximum]. Throws ConfigError naming `where`.
int read_integer(const std::string& where, const std::string& text, int minimum, int maximum);

/// Returns how many addresses before `rank` are on the same host as `rank`.
int local_rank_of(const std::vector<HostPort>& addresses, int rank);

/// maximum number of processes of a run
constexpr int max_processes = 65536;
/// port of rank 0 if no source names one
constexpr int default_port = 29500;

/// Reads environment variables; an empty variable counts as unset.
class Environment {
 public:
  /// Reads the variables of this process if `environment` is empty.
  explicit Environment(EnvironmentLookup environment);

  std::optional<std::string> find(const std::string& name) const;
  /// Throws ConfigError if `name` is not set although the variable `reason` is.
  std::string require(const std::string& name, const std::string& reason) const;
  /// Throws ConfigError unless the variable is unset or an integer in [minimum, maximum].
  std::optional<int> find_integer(const std::string& name, int minimum, int maximum) const;
  int require_integer(const std::string& name, const std::string& reason, int minimum,
                      int maximum) const;

 private:
  EnvironmentLookup environment_;
};

/// Reads the cluster from TF_CONFIG; nullopt if that is unset or empty.
std::optional<Cluster> cluster_from_tf_config(const Environment& variables);
/// Reads the cluster from DTENSOR_JOBS, DTENSOR_CLIENT_ID and DTENSOR_NUM_CLIENTS.
std::optional<Cluster> cluster_from_dtensor(const Environment& variables);
/// Reads the cluster from what mpirun (Open MPI) sets, or from PMIx alone; nullopt for the tasks of
/// srun.
std::optional<Cluster> cluster_from_mpi(const Environment& variables, const ClusterFlags& flags);
/// Reads the cluster from the variables that Kubeflow Trainer sets for torchrun, PET_NNODES and so
/// on, where each node runs one process.
std::optional<Cluster> cluster_from_pet(const Environment& variables);
/// Reads the cluster from an indexed Job of Kubernetes (of a JobSet, for example) whose pods have
/// WORLD_SIZE and MASTER_ADDR: JOB_COMPLETION_INDEX is the rank.
std::optional<Cluster> cluster_from_job_index(const Environment& variables);
/// Reads the cluster from the variables of a Slurm step with several tasks. They agree on an
/// address and a secret by PMIx if srun offers that and nothing else gives a secret.
std::optional<Cluster> cluster_from_slurm(const Environment& variables, const ClusterFlags& flags);

/// Asks the launcher by PMIx: rank and size, and, without MASTER_ADDR, an address of rank 0 and,
/// where the processes have none, a secret that rank 0 draws. Then all processes of the job have to
/// call it; they do so once, however often. `where`: the variable that told of the launcher;
/// `otherwise`: how to do without PMIx; for errors. Throws ConfigError or CommError.
Cluster cluster_from_pmix(const Environment& variables, const ClusterFlags& flags,
                          const std::string& where, const std::string& otherwise);

/// Reads the address of rank 0 from MASTER_ADDR and MASTER_PORT. Returns false without MASTER_ADDR.
bool read_master(const Environment& variables, Cluster& cluster);

/// Throws ConfigError if another launcher's variables, such as MPICH's, tell of several processes,
/// and not of the `processes` that were found: each would be a run of its own, or one of several
/// with the same rank.
void check_other_launchers(const Environment& variables, int processes);

/// Returns the first host of a Slurm list: "gpu03" of "gpu[03-05,09],cpu1". Throws ConfigError
/// naming `where`.
std::string first_slurm_host(const std::string& where, const std::string& list);

}  // namespace tessera::detail
