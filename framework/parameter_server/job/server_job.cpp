#include <tessera/framework/parameter_server/job/server_job.hpp>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>
#include <tessera/framework/parameter_server/job/job_program.hpp>
#include <tessera/framework/parameter_server/job/server_cluster.hpp>
#include <tessera/framework/parameter_server/job/task_runtime.hpp>

namespace tessera::detail {

using namespace strategy;

struct ServerJob::State {
  ParameterServerOptions options;
  ServerCluster cluster;
  std::vector<VariableGroup> groups = {};
  std::map<std::string, ClosureFunction> functions = {};
  std::map<std::string, RegisteredDataset> datasets = {};
  int phase = 0;
  int next_server = 0;  ///< server of the next group's first part
  int unwinding = std::uncaught_exceptions();
  std::string error = "its program ended with an error";
  std::unique_ptr<CoordinatorRuntime> coordinator = {};
  std::unique_ptr<TaskRuntime> task = {};
};

ServerJob::ServerJob(ParameterServerOptions options, const Strategy& strategy) {
  state_ = std::make_unique<State>(State{std::move(options), {}});
  state_->cluster = server_cluster(state_->options.cluster);
  if (task_type() == TaskType::chief) {
    state_->coordinator = std::make_unique<CoordinatorRuntime>(state_->cluster, state_->options);
  } else {
    state_->task = std::make_unique<TaskRuntime>(*this, state_->cluster, strategy, state_->options);
  }
}

ServerJob::~ServerJob() { close(); }

void ServerJob::close() {
  if (state_->coordinator && std::uncaught_exceptions() > state_->unwinding) fail(state_->error);
  state_->coordinator.reset();
  state_->task.reset();
}

const ParameterServerOptions& ServerJob::options() const { return state_->options; }
TaskType ServerJob::task_type() const { return state_->cluster.type; }
int ServerJob::task_index() const { return state_->cluster.index; }
int ServerJob::workers() const { return static_cast<int>(state_->cluster.workers.size()); }
int ServerJob::servers() const { return static_cast<int>(state_->cluster.servers.size()); }
std::string ServerJob::task_name() const { return state_->cluster.name(); }
const std::vector<VariableGroup>& ServerJob::groups() const { return state_->groups; }

int ServerJob::place(const std::vector<Variable>& variables, const OptimizerHandle& optimizer) {
  VariableGroup group{
      variables, optimizer,
      plan_parts(variables, state_->options.variable_partitioner, servers(), state_->next_server)};
  const int number = static_cast<int>(state_->groups.size());
  if (state_->task) state_->task->add_group(number, group);
  // Parts are assigned round-robin across all groups.
  state_->next_server =
      static_cast<int>((static_cast<size_t>(state_->next_server) + group.plan.parts.size()) %
                       static_cast<size_t>(servers()));
  state_->groups.push_back(std::move(group));
  return number;
}

void ServerJob::use(int group) {
  std::set<uint64_t> taken;
  VariableGroup& selected = state_->groups.at(static_cast<size_t>(group));
  for (const Variable& variable : selected.variables) taken.insert(variable.id());
  for (VariableGroup& other : state_->groups) {
    const auto shared = [&](const Variable& variable) { return taken.count(variable.id()) != 0; };
    if (std::any_of(other.variables.begin(), other.variables.end(), shared)) other.used = false;
  }
  selected.used = true;
}

void ServerJob::add_function(const std::string& name, ClosureFunction function) {
  if (state_->functions.try_emplace(name, std::move(function)).second) return;
  throw ConfigError("add_function", "every function must have a unique name", in_quotes(name),
                    "choose another name");
}

const ClosureFunction* ServerJob::find_function(const std::string& name) const {
  const auto it = state_->functions.find(name);
  return it == state_->functions.end() ? nullptr : &it->second;
}

void ServerJob::add_dataset(const std::string& name, RegisteredDataset data) {
  if (state_->datasets.try_emplace(name, std::move(data)).second) return;
  throw ConfigError("add_dataset", "every dataset must have a unique name", in_quotes(name),
                    "choose another name");
}

const RegisteredDataset* ServerJob::find_dataset(const std::string& name) const {
  const auto it = state_->datasets.find(name);
  return it == state_->datasets.end() ? nullptr : &it->second;
}

JobProgram ServerJob::program() const {
  JobProgram program;
  for (const auto& [name, function] : state_->functions) program.functions.push_back(name);
  for (const auto& [name, data] : state_->datasets) program.datasets.push_back(name);
  for (const VariableGroup& group : state_->groups) program.groups.push_back(describe_group(group));
  return program;
}

CoordinatorRuntime& ServerJob::coordinator() const {
  if (state_->coordinator) return *state_->coordinator;
  if (task_type() == TaskType::chief) {
    throw StateError("ClusterCoordinator", "its strategy must be alive", "a destroyed one", "");
  }
  throw ConfigError("ClusterCoordinator", "it runs on the task \"chief\"", task_name(),
                    "call join() on this task");
}

const std::string& ServerJob::job_name() const { return coordinator().job(); }

void ServerJob::connect() { coordinator().connect(program()); }

void ServerJob::send_new_groups() {
  CoordinatorRuntime& coordinator = this->coordinator();
  const auto all = static_cast<int>(state_->groups.size());
  coordinator.set_program(program());
  for (int g = coordinator.groups(); g < all; ++g) {
    const VariableGroup& group = state_->groups[static_cast<size_t>(g)];
    coordinator.store().define(g, group);
    coordinator.store().assign(g, group, true);
    coordinator.set_groups(g + 1);
  }
}

int ServerJob::begin_phase() { return coordinator().begin_phase(); }
void ServerJob::end_phase(const std::string& result) { coordinator().end_phase(result); }
StoreClient& ServerJob::store() { return coordinator().store(); }
void ServerJob::record_error(const std::string& line) { state_->error = line; }

void ServerJob::fail(const std::string& what) noexcept {
  if (!state_->coordinator) return;
  try {
    // An error without a place gets this task's name.
    const std::string line = what.starts_with('[') ? what : str("[", task_name(), "] ", what);
    state_->coordinator->fail(std::make_exception_ptr(CommError(line)), line);
  } catch (const std::exception&) {
    // Without memory for a line the tasks still notice, as their connections break.
  }
}

std::string ServerJob::serve(int phase) {
  if (state_->task) return state_->task->serve(phase, [this] { return program(); });
  throw ConfigError("join", "the coordinator schedules, the other tasks work", task_name(),
                    "make a ClusterCoordinator on this task");
}

int ServerJob::next_phase() { return ++state_->phase; }
bool ServerJob::over() const { return state_->task && state_->task->over(); }

}  // namespace tessera::detail
