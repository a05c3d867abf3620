#pragma once

#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>

namespace tessera::detail {

/// The tasks of a parameter server job, by type, and which of them this one is.
struct ServerCluster {
  TaskType type = TaskType::chief;
  int index = 0;
  std::vector<std::string> workers, servers, evaluators;  ///< "host:port"
  std::string coordinator;
  std::string source;  ///< what errors call the description, "TF_CONFIG"
  JobAccess access;    ///< what tasks prove to each other that they know

  const std::vector<std::string>& addresses(TaskType task_type) const;
  /// The address of this task; empty for an evaluator that the cluster does not list.
  std::string address() const;
  /// "worker 1 (127.0.0.1:4001)"; of this task without arguments.
  std::string name_of(TaskType task_type, int task) const;
  std::string name() const { return name_of(type, index); }
  /// "TF_CONFIG: cluster.worker[1]".
  std::string key() const;
};

/// The cluster as a parameter server job wants it; one without a source is looked for in the
/// environment. Throws ConfigError naming the key that is missing, and where a task would listen
/// beyond its host without a secret.
ServerCluster server_cluster(const Cluster& given);

}  // namespace tessera::detail
