#include <tessera/framework/cluster/cluster.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/internal/elastic_cluster.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera {

using namespace detail;

namespace {

void require_flag(bool present, const std::string& flag) {
  if (present) return;
  throw ConfigError(flag, "must be given for a run of several processes", "nothing",
                    "give --coordinator, --rank and --processes together");
}

std::optional<Cluster> from_flags(const ClusterFlags& flags) {
  if (flags.coordinator.empty() && flags.rank < 0 && flags.size < 0) return std::nullopt;
  require_flag(flags.size >= 0, "--processes");
  read_integer("--processes", std::to_string(flags.size), 1, max_processes);
  Cluster cluster;
  cluster.size = flags.size;
  cluster.source = "--processes";
  if (flags.size > 1) {
    require_flag(!flags.coordinator.empty(), "--coordinator");
    require_flag(flags.rank >= 0, "--rank");
  }
  if (flags.rank >= 0) {
    cluster.rank = read_integer("--rank", std::to_string(flags.rank), 0, flags.size - 1);
  }
  cluster.local_rank = cluster.rank;
  if (!flags.coordinator.empty()) {
    const HostPort address = read_host_port("--coordinator", flags.coordinator);
    cluster.address = address.host;
    cluster.port = address.port;
    cluster.source = "--coordinator";
  }
  return cluster;
}

/// Reads the variables that torchrun, wrappers of other launchers and our own launcher set.
std::optional<Cluster> from_rank(const Environment& variables) {
  if (!variables.find("RANK") && !variables.find("WORLD_SIZE")) return std::nullopt;
  // An indexed Job of Kubernetes, whose manifest can name the size only.
  if (!variables.find("RANK") && variables.find("JOB_COMPLETION_INDEX")) return std::nullopt;
  Cluster cluster;
  cluster.size = variables.require_integer("WORLD_SIZE", "RANK", 1, max_processes);
  cluster.rank = variables.require_integer("RANK", "WORLD_SIZE", 0, cluster.size - 1);
  cluster.local_rank =
      variables.find_integer("LOCAL_RANK", 0, cluster.size - 1).value_or(cluster.rank);
  if (cluster.size > 1) cluster.address = variables.require("MASTER_ADDR", "RANK");
  cluster.port = variables.find_integer("MASTER_PORT", 1, 65535).value_or(default_port);
  // torchrun's own store then listens on MASTER_PORT.
  if (variables.find("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    cluster.port += cluster.port < 65535 ? 1 : -1;
  }
  cluster.source = "RANK";
  return cluster;
}

/// Returns the cluster of a process of an elastic run. Throws ConfigError where nothing can join
/// its register: each process would train alone.
std::optional<Cluster> from_register(const Environment& variables, const ClusterFlags& flags,
                                     bool own_environment) {
  const auto where = variables.find("TESSERA_MEMBERS");
  if (!where) return std::nullopt;
  if (own_environment && elastic_cluster()) return elastic_cluster()(flags);
  throw ConfigError("TESSERA_MEMBERS", "the processes of launch --elastic join its register",
                    str("a program that does not, with the register at ", in_quotes(*where)),
                    "start it by launch without --elastic");
}

}  // namespace

ElasticCluster& detail::elastic_cluster() {
  static ElasticCluster find;
  return find;
}

std::string to_string(TaskType type) {
  switch (type) {
    case TaskType::chief:
      return "chief";
    case TaskType::worker:
      return "worker";
    case TaskType::ps:
      return "ps";
    case TaskType::evaluator:
      break;
  }
  return "evaluator";
}

Cluster find_cluster(const ClusterFlags& flags, const EnvironmentLookup& environment) {
  const Environment variables(environment);
  std::optional<Cluster> cluster = from_flags(flags);
  // Before the variables of a launcher that starts the processes of an elastic run, such as srun.
  if (!cluster) {
    cluster = from_register(variables, flags, !environment);
    if (cluster) return *cluster;
  }
  if (!cluster) cluster = cluster_from_tf_config(variables);
  if (!cluster) cluster = cluster_from_dtensor(variables);
  if (!cluster) cluster = from_rank(variables);
  if (!cluster) cluster = cluster_from_mpi(variables, flags);
  if (!cluster) cluster = cluster_from_pet(variables);
  if (!cluster) cluster = cluster_from_job_index(variables);
  if (!cluster) {
    cluster = cluster_from_slurm(variables, flags);
    check_other_launchers(variables, cluster ? cluster->size : 1);
  }
  if (!cluster) return {};
  if (auto job = variables.find("TESSERA_JOB")) cluster->job = *job;
  cluster->insecure = flags.insecure;
  cluster->encrypt = flags.encrypt;
  return *cluster;
}

}  // namespace tessera
