#include <algorithm>
#include <cctype>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>

namespace tessera::detail {
namespace {

using Tasks = std::vector<std::pair<TaskType, std::vector<std::string>>>;

const std::vector<std::string> type_names = {"chief", "worker", "ps", "evaluator"};

TaskType task_type(const std::string& name, const JsonPath& path) {
  for (size_t i = 0; i < type_names.size(); ++i) {
    if (name == type_names[i]) return static_cast<TaskType>(i);
  }
  throw ConfigError(path.text(), "must be a type of task", in_quotes(name),
                    suggestion(name, type_names));
}

bool trains(TaskType type) { return type == TaskType::chief || type == TaskType::worker; }

const std::vector<std::string>* find_tasks(const Tasks& tasks, TaskType type) {
  const auto it = std::find_if(tasks.begin(), tasks.end(),
                               [&](const auto& entry) { return entry.first == type; });
  return it == tasks.end() ? nullptr : &it->second;
}

void check_tasks(const Tasks& tasks, const JsonPath& path) {
  std::set<std::pair<std::string, int>> seen;
  for (const auto& [type, list] : tasks) {
    const JsonPath type_path = path.key(to_string(type));
    if (list.empty()) {
      throw ConfigError(type_path.text(), "must have at least one task", "an empty list",
                        "leave the type out");
    }
    if (type == TaskType::chief && list.size() > 1) {
      throw ConfigError(type_path.text(), "must be one task", str(list.size(), " tasks"),
                        "make the others workers");
    }
    for (size_t i = 0; i < list.size(); ++i) {
      HostPort address = read_host_port(type_path.index(i).text(), list[i]);
      std::transform(address.host.begin(), address.host.end(), address.host.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (seen.emplace(address.host, address.port).second) continue;
      throw ConfigError(type_path.index(i).text(), "must have a unique address",
                        in_quotes(list[i]) + " again", "give every task another port");
    }
  }
  if (find_tasks(tasks, TaskType::chief) || find_tasks(tasks, TaskType::worker)) return;
  throw ConfigError(path.text(), "must have a chief or a worker", "none", "add \"worker\"");
}

Tasks read_tasks(const Json& json, const JsonPath& path) {
  if (!json.is_object()) json_fail(json, path, "an object");
  Tasks tasks;
  for (const auto& [name, list] : json.items()) {
    tasks.emplace_back(task_type(name, path.key(name)),
                       json_as<std::vector<std::string>>(list, path.key(name)));
  }
  check_tasks(tasks, path);
  return tasks;
}

/// Sets the type and rank of this process from TF_CONFIG's task. Chief and workers are ranked
/// together; parameter servers and evaluators by their index.
void read_task(Cluster& cluster, const Json& json, const JsonPath& path) {
  JsonObject task(json, path);
  cluster.type = task_type(task.take<std::string>("type"), path.key("type"));
  const auto explicit_index = task.take_optional<int>("index");
  task.take_optional<Json>("trial");
  task.take_optional<Json>("cloud");
  task.finish();
  const std::vector<std::string>* list = find_tasks(cluster.tasks, cluster.type);
  // As in TensorFlow, evaluators need not be listed in the cluster.
  if (list == nullptr && cluster.type != TaskType::evaluator) {
    throw ConfigError(path.key("type").text(), "must be a type listed in cluster",
                      in_quotes(to_string(cluster.type)), "add it to cluster");
  }
  const int count = list == nullptr ? max_processes : static_cast<int>(list->size());
  if (!explicit_index && list != nullptr && count > 1) {
    throw ConfigError(path.key("index").text(), str("must say which of ", count, " tasks it is"),
                      "nothing", str("set an integer from 0 to ", count - 1));
  }
  const int index = explicit_index.value_or(0);
  read_integer(path.key("index").text(), std::to_string(index), 0, count - 1);
  const bool after_chief =
      cluster.type == TaskType::worker && find_tasks(cluster.tasks, TaskType::chief);
  cluster.rank = index + (after_chief ? 1 : 0);
}

}  // namespace

std::optional<Cluster> cluster_from_tf_config(const Environment& variables) {
  const auto text = variables.find("TF_CONFIG");
  if (!text) return std::nullopt;
  const Json json = parse_json(*text, "TF_CONFIG");
  const JsonPath path("TF_CONFIG");
  if (json.is_object() && json.empty()) return std::nullopt;
  JsonObject config(json, path);
  Cluster cluster;
  const Json cluster_json = config.take<Json>("cluster");
  const Json task_json = config.take<Json>("task");
  // Keys that Google's and Kubeflow's services add.
  for (const char* key : {"environment", "job", "rpc_layer"}) config.take_optional<Json>(key);
  config.finish();
  cluster.tasks = read_tasks(cluster_json, path.key("cluster"));
  std::vector<HostPort> addresses;
  for (TaskType type : {TaskType::chief, TaskType::worker}) {
    const auto* list = find_tasks(cluster.tasks, type);
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      addresses.push_back(read_host_port("TF_CONFIG", (*list)[i]));
    }
  }
  cluster.size = static_cast<int>(addresses.size());
  read_task(cluster, task_json, path.key("task"));
  if (trains(cluster.type)) cluster.local_rank = local_rank_of(addresses, cluster.rank);
  cluster.address = addresses[0].host;
  cluster.port = addresses[0].port;
  cluster.source = "TF_CONFIG";
  return cluster;
}

}  // namespace tessera::detail
