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
/// Reads the cluster from the variables of a Slurm step with several tasks.
std::optional<Cluster> cluster_from_slurm(const Environment& variables);

/// Throws ConfigError if another launcher's variables, such as mpirun's, tell of several processes,
/// and not of the `processes` that were found: each would be a run of its own, or one of several
/// with the same rank.
void check_other_launchers(const Environment& variables, int processes);

/// Returns the first host of a Slurm list: "gpu03" of "gpu[03-05,09],cpu1". Throws ConfigError
/// naming `where`.
std::string first_slurm_host(const std::string& where, const std::string& list);

}  // namespace tessera::detail
