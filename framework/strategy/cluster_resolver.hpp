#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>

namespace tessera::strategy {

/// The cluster that TF_CONFIG describes, and nothing else
/// (tf.distribute.cluster_resolver.TFConfigClusterResolver); alone where it is not set. Throws
/// ConfigError as find_cluster().
struct TFConfigClusterResolver : Cluster {
  explicit TFConfigClusterResolver(const detail::EnvironmentLookup& environment = {});
};

/// The cluster that Slurm's variables describe, and nothing else
/// (tf.distribute.cluster_resolver.SlurmClusterResolver); alone outside of a job of several tasks.
/// Throws ConfigError as find_cluster().
struct SlurmClusterResolver : Cluster {
  explicit SlurmClusterResolver(const detail::EnvironmentLookup& environment = {});
};

/// "host:port" of all tasks by type: "chief", "worker", "ps", "evaluator".
using ClusterSpec = std::map<std::string, std::vector<std::string>>;

/// A cluster by hand (tf.distribute.cluster_resolver.SimpleClusterResolver): what TF_CONFIG would
/// say, whose keys errors name. Throws ConfigError as find_cluster().
struct SimpleClusterResolver : Cluster {
  SimpleClusterResolver(const ClusterSpec& cluster_spec, const std::string& task_type, int task_id);
};

}  // namespace tessera::strategy
