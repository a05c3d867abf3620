#include "tests/support/cluster_tasks.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/cluster/launcher/launcher.hpp>

namespace tessera::test {

using namespace detail;

namespace {

std::vector<std::string> task_names(const ClusterShape& shape) {
  std::vector<std::string> names;
  if (shape.chief) names.emplace_back("chief");
  for (int i = 0; i < shape.workers; ++i) names.push_back(str("worker ", i));
  for (int i = 0; i < shape.servers; ++i) names.push_back(str("ps ", i));
  if (shape.evaluator) names.emplace_back("evaluator");
  return names;
}

std::string type_of(const std::string& task) { return task.substr(0, task.find(' ')); }

int index_of(const std::string& task) {
  const size_t space = task.find(' ');
  return space == task.npos ? 0 : std::stoi(task.substr(space + 1));
}

}  // namespace

ClusterTasks::ClusterTasks(const ClusterShape& shape, const std::filesystem::path& program,
                           const std::vector<std::string>& arguments, const Variables& environment,
                           const std::vector<std::string>& later)
    : ProcessGroup(static_cast<int>(task_names(shape).size())),
      program_(program),
      arguments_(arguments),
      environment_(environment),
      tasks_(task_names(shape)),
      ports_(free_ports(static_cast<int>(tasks_.size()))),
      starts_(tasks_.size()) {
  for (const std::string& task : tasks_) {
    if (std::find(later.begin(), later.end(), task) == later.end()) restart(task);
  }
}

int ClusterTasks::number(const std::string& task) const {
  const auto found = std::find(tasks_.begin(), tasks_.end(), task);
  if (found == tasks_.end()) throw std::runtime_error("no task " + task);
  return static_cast<int>(found - tasks_.begin());
}

std::string ClusterTasks::address(const std::string& task) const {
  return str("127.0.0.1:", port(task));
}

std::string ClusterTasks::tf_config(size_t number) const {
  Json cluster = Json::object();
  for (const std::string& task : tasks_) cluster[type_of(task)].push_back(address(task));
  const std::string& task = tasks_[number];
  return to_json_text(
      {{"cluster", cluster}, {"task", {{"type", type_of(task)}, {"index", index_of(task)}}}});
}

void ClusterTasks::signal(const std::string& task, int signal) const {
  ProcessGroup::signal(number(task), signal);
}

void ClusterTasks::kill(const std::string& task) {
  signal(task, SIGKILL);
  wait(std::chrono::seconds(20), {number(task)});
}

void ClusterTasks::restart(const std::string& task) {
  const auto n = static_cast<size_t>(number(task));
  Variables variables = {{"TF_CONFIG", tf_config(n)},
                         {"TESSERA_JOB", str("test-", getpid(), "-", ports_[0])}};
  if (starts_[n] > 0) variables.emplace_back("TESSERA_RESTART", std::to_string(starts_[n]));
  ++starts_[n];
  start(number(task), program_, arguments_, replaced(variables, environment_));
}

bool ClusterTasks::writes(const std::string& task, const std::string& text,
                          std::chrono::milliseconds patience) {
  return ProcessGroup::writes(number(task), text, patience);
}

std::string ClusterTasks::text(const std::string& task) const {
  return ProcessGroup::text(number(task));
}

void ClusterTasks::wait_all(std::chrono::milliseconds patience,
                            const std::vector<std::string>& without) {
  std::vector<int> numbers;
  for (const std::string& task : tasks_) {
    if (std::find(without.begin(), without.end(), task) == without.end()) {
      numbers.push_back(number(task));
    }
  }
  wait(patience, numbers);
}

const RankEnd& ClusterTasks::end(const std::string& task, std::chrono::milliseconds patience) {
  return wait(patience, {number(task)})[static_cast<size_t>(number(task))];
}

}  // namespace tessera::test
