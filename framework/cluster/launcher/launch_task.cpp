#include <tessera/framework/cluster/launcher/launch_task.hpp>

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/cluster/internal/job_secret.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

namespace tessera::detail {
namespace {

using Environment = std::map<std::string, std::string>;

std::string random_name() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) < 0) number = static_cast<uint64_t>(getpid());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

int core_count() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Environment own_variables() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equal = text.find('=');
    if (equal != text.npos) variables.emplace(text.substr(0, equal), text.substr(equal + 1));
  }
  return variables;
}

/// Returns the environment common to all processes of one attempt.
Environment shared_variables(const LaunchOptions& options) {
  Environment variables = own_variables();
  // These describe another run.
  for (const char* name :
       {"TESSERA_SECRET_FILE", "TF_CONFIG", "DTENSOR_JOBS", "DTENSOR_CLIENT_ID",
        "DTENSOR_NUM_CLIENTS", "TESSERA_RESTART", "RANK", "WORLD_SIZE", "LOCAL_RANK",
        "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TESSERA_MEMBERS"}) {
    variables.erase(name);
  }
  variables["TESSERA_JOB"] = random_name();
  variables["TESSERA_SECRET"] = make_secret();
  if (options.encrypt) variables["TESSERA_ENCRYPT"] = "1";
  variables.emplace("OMP_NUM_THREADS",
                    std::to_string(std::max(1, core_count() / options.processes)));
  return variables;
}

std::vector<LaunchTask> ranks(const LaunchOptions& options) {
  Environment variables = shared_variables(options);
  variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = std::to_string(options.processes);
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(free_port());
  std::vector<LaunchTask> tasks;
  for (int rank = 0; rank < options.processes; ++rank) {
    variables["RANK"] = variables["LOCAL_RANK"] = std::to_string(rank);
    tasks.push_back({.type = "rank", .index = rank, .environment = variables});
  }
  return tasks;
}

/// Returns the processes of an elastic run: none has a rank before it is in a generation.
/// LOCAL_RANK is what no generation changes, so that each keeps its GPU.
std::vector<LaunchTask> members(const LaunchOptions& options) {
  Environment variables = shared_variables(options);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(options.processes);
  std::vector<LaunchTask> tasks;
  for (int slot = 0; slot < options.processes; ++slot) {
    variables["LOCAL_RANK"] = std::to_string(slot);
    tasks.push_back(
        {.type = "member", .index = slot, .expendable = true, .environment = variables});
  }
  return tasks;
}

/// Returns the number of tasks of each type in TF_CONFIG.
std::vector<std::pair<std::string, int>> task_counts(const LaunchOptions& options) {
  if (options.servers == 0) return {{"worker", options.processes}};
  std::vector<std::pair<std::string, int>> counts = {
      {"chief", 1}, {"worker", options.processes}, {"ps", options.servers}};
  if (options.evaluator) counts.emplace_back("evaluator", 1);
  return counts;
}

std::vector<LaunchTask> tf_config_tasks(const LaunchOptions& options) {
  const auto counts = task_counts(options);
  int count = 0;
  for (const auto& entry : counts) count += entry.second;
  const std::vector<int> ports = free_ports(count);
  Json cluster = Json::object();
  auto port = ports.begin();
  for (const auto& [type, number] : counts) {
    for (int i = 0; i < number; ++i) cluster[type].push_back(str("127.0.0.1:", *port++));
  }
  Environment variables = shared_variables(options);
  std::vector<LaunchTask> tasks;
  for (const auto& [type, number] : counts) {
    const bool expendable = options.servers > 0 && (type == "worker" || type == "evaluator");
    for (int i = 0; i < number; ++i) {
      const Json config = {{"cluster", cluster}, {"task", {{"type", type}, {"index", i}}}};
      variables["TF_CONFIG"] = to_json_text(config, -1);
      tasks.push_back({.type = options.servers == 0 ? "rank" : type,
                       .index = i,
                       .expendable = expendable,
                       .environment = variables});
    }
  }
  return tasks;
}

}  // namespace

std::string LaunchTask::name() const {
  return type == "chief" || type == "evaluator" ? type : str(type, " ", index);
}

std::string LaunchTask::label() const {
  return type == "rank" || type == "member" ? std::to_string(index) : name();
}

std::vector<LaunchTask> launch_tasks(const LaunchOptions& options, int restart) {
  const bool plain = options.servers == 0 && !options.tf_config;
  std::vector<LaunchTask> tasks = options.min_processes > 0 ? members(options)
                                  : plain                   ? ranks(options)
                                                            : tf_config_tasks(options);
  for (LaunchTask& task : tasks) task.restarts = restart;
  return tasks;
}

std::string names_of(const std::vector<LaunchTask>& tasks) {
  if (tasks.front().type == "rank") {
    std::vector<int> numbers;
    for (const LaunchTask& task : tasks) numbers.push_back(task.index);
    return rank_names(numbers);
  }
  std::string text = tasks.front().name();
  for (size_t i = 1; i < tasks.size(); ++i) {
    text += str(i + 1 == tasks.size() ? " and " : ", ", tasks[i].name());
  }
  return text;
}

}  // namespace tessera::detail
