#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::detail {

/// Where a process listens.
struct HostPort {
  std::string host;
  int port = 0;
};

/// Host and port from "host:port" or "[::1]:port". Throws ConfigError naming `where`.
HostPort read_host_port(const std::string& where, const std::string& text);

/// Whether a host, a name or digits, is this one by its loopback address.
bool is_loopback(const std::string& host);

/// The integer that `text` is, in [minimum, maximum]. Throws ConfigError naming `where`.
int read_integer(const std::string& where, const std::string& text, int minimum, int maximum);

/// How many of the addresses before `rank` are on the host of that one.
int local_rank_of(const std::vector<HostPort>& addresses, int rank);

/// Processes that a run has at most.
constexpr int max_processes = 65536;

/// Reads environment variables; an empty one is none.
class Environment {
 public:
  /// Reads the variables of this process if `environment` is empty.
  explicit Environment(EnvironmentLookup environment);

  std::optional<std::string> find(const std::string& name) const;
  /// Throws ConfigError saying that it has to be there because `reason` is.
  std::string require(const std::string& name, const std::string& reason) const;
  /// Throws ConfigError unless it is absent or an integer in [minimum, maximum].
  std::optional<int> find_integer(const std::string& name, int minimum, int maximum) const;
  int require_integer(const std::string& name, const std::string& reason, int minimum,
                      int maximum) const;

 private:
  EnvironmentLookup environment_;
};

/// The cluster that TF_CONFIG describes, if it does.
std::optional<Cluster> cluster_from_tf_config(const Environment& variables);
/// DTENSOR_JOBS, DTENSOR_CLIENT_ID and DTENSOR_NUM_CLIENTS.
std::optional<Cluster> cluster_from_dtensor(const Environment& variables);
/// The variables of a Slurm step of more than one task.
std::optional<Cluster> cluster_from_slurm(const Environment& variables);

/// The first host of Slurm's list: "gpu03" of "gpu[03-05,09],cpu1". Throws ConfigError naming
/// `where`.
std::string first_slurm_host(const std::string& where, const std::string& list);

}  // namespace tessera::detail
