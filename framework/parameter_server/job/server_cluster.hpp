#pragma once

#include <string>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>

namespace tessera::detail {

/// The tasks of a parameter server job by type, and the position of this task among them.
struct ServerCluster {
  TaskType type = TaskType::chief;
  int index = 0;
  std::vector<std::string> workers, servers, evaluators;  ///< "host:port"
  std::string coordinator;
  std::string source;  ///< name of the description for errors: "TF_CONFIG"
  JobAccess access;    ///< secret by which tasks authenticate each other

  const std::vector<std::string>& addresses(TaskType task_type) const;
  /// Returns the address of this task; empty for an evaluator that the cluster does not list.
  std::string address() const;
  /// Return the name of a task, or of this one: "worker 1 (127.0.0.1:4001)".
  std::string name_of(TaskType task_type, int task) const;
  std::string name() const { return name_of(type, index); }
  /// Returns the key of this task: "TF_CONFIG: cluster.worker[1]".
  std::string key() const;
};

/// Converts a Cluster to that of a parameter server job; one without a source is read from the
/// environment. Throws ConfigError naming a missing key, or for a task that would listen beyond its
/// host without a secret.
ServerCluster server_cluster(const Cluster& requested);

}  // namespace tessera::detail
