#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::strategy {

/// The cluster that TF_CONFIG describes; other sources are ignored
/// (tf.distribute.cluster_resolver.TFConfigClusterResolver). A single process if it is not set.
/// Throws ConfigError, as find_cluster() does.
struct TFConfigClusterResolver : Cluster {
  explicit TFConfigClusterResolver(const EnvironmentLookup& environment = {});
};

/// The cluster that Slurm's variables describe; other sources are ignored
/// (tf.distribute.cluster_resolver.SlurmClusterResolver). A single process outside of a job of
/// several tasks. Throws ConfigError, as find_cluster() does.
struct SlurmClusterResolver : Cluster {
  explicit SlurmClusterResolver(const EnvironmentLookup& environment = {});
};

/// Addresses "host:port" of all tasks by type: "chief", "worker", "ps", "evaluator".
using ClusterSpec = std::map<std::string, std::vector<std::string>>;

/// A cluster given explicitly (tf.distribute.cluster_resolver.SimpleClusterResolver), checked like
/// TF_CONFIG, whose keys appear in errors. Throws ConfigError, as find_cluster() does.
struct SimpleClusterResolver : Cluster {
  SimpleClusterResolver(const ClusterSpec& cluster_spec, const std::string& task_type, int task_id);
};

}  // namespace tessera::strategy
