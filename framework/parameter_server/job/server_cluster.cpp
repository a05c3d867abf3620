#include <tessera/framework/parameter_server/job/server_cluster.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {

namespace {

constexpr const char* strategy_name = "ParameterServerStrategy";

std::vector<std::string> tasks_of(const Cluster& cluster, TaskType type) {
  const auto it = std::find_if(cluster.tasks.begin(), cluster.tasks.end(),
                               [&](const auto& entry) { return entry.first == type; });
  return it == cluster.tasks.end() ? std::vector<std::string>() : it->second;
}

Cluster resolve_cluster(const Cluster& requested) {
  Cluster cluster = requested.source.empty() ? find_cluster() : requested;
  cluster.secret = requested.secret;
  cluster.insecure = requested.insecure;
  cluster.encrypt = requested.encrypt;
  if (!cluster.tasks.empty()) return cluster;
  const std::string from = cluster.source.empty() ? "nothing" : cluster.source;
  throw ConfigError(strategy_name, "TF_CONFIG describes the cluster and this task", from,
                    "set it, or start the tasks with launch --ps");
}

std::vector<std::string> required(const Cluster& cluster, TaskType type, const char* what) {
  std::vector<std::string> tasks = tasks_of(cluster, type);
  if (!tasks.empty()) return tasks;
  throw ConfigError(str(cluster.source, ": cluster.", to_string(type)),
                    str(strategy_name, " needs ", what), "none",
                    str("add \"", to_string(type), "\" to the cluster"));
}

}  // namespace

const std::vector<std::string>& ServerCluster::addresses(TaskType task_type) const {
  return task_type == TaskType::worker ? workers : task_type == TaskType::ps ? servers : evaluators;
}

std::string ServerCluster::address() const {
  if (type == TaskType::chief) return coordinator;
  const std::vector<std::string>& all = addresses(type);
  const auto at = static_cast<size_t>(index);
  return at < all.size() ? all[at] : "";
}

std::string ServerCluster::name_of(TaskType task_type, int task) const {
  if (task_type == TaskType::chief) return str("the coordinator (", coordinator, ")");
  const std::vector<std::string>& all = addresses(task_type);
  const auto at = static_cast<size_t>(task);
  const std::string suffix = at < all.size() ? str(" (", all[at], ")") : "";
  return str(to_string(task_type), " ", task, suffix);
}

std::string ServerCluster::key() const {
  return str(source, ": cluster.", to_string(type), "[", index, "]");
}

ServerCluster server_cluster(const Cluster& requested) {
  const Cluster cluster = resolve_cluster(requested);
  ServerCluster result;
  result.type = cluster.type;
  // Workers' ranks count the coordinator, too.
  result.index = cluster.type == TaskType::worker ? cluster.rank - 1 : cluster.rank;
  result.source = cluster.source;
  result.coordinator = required(cluster, TaskType::chief, "a coordinator, the task \"chief\"")[0];
  result.workers = required(cluster, TaskType::worker, "at least one worker");
  result.servers = required(cluster, TaskType::ps, "at least one parameter server");
  result.evaluators = tasks_of(cluster, TaskType::evaluator);
  result.access = job_access(cluster);
  for (const auto& [type, addresses] : cluster.tasks) {
    for (const std::string& address : addresses) {
      // The coordinator does not listen.
      if (type == TaskType::chief) continue;
      check_access(strategy_name, str("a task \"", to_string(type), "\""),
                   read_host_port(cluster.source, address).host, result.access);
    }
  }
  return result;
}

}  // namespace tessera::detail
