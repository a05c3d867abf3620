#include <tessera/framework/parameter_server/parameter_server_strategy.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/parameter_server/internal/server_steps.hpp>
#include <tessera/framework/parameter_server/job/server_job.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

/// Strategy scope that also makes fit run its steps on the cluster.
class ServerScope final : public StrategyScope {
 public:
  ServerScope(const Strategy& strategy, std::shared_ptr<StepExecutor> steps)
      : StrategyScope(strategy), steps_(std::move(steps)) {}

 private:
  StepExecutorScope steps_;
};

Mesh worker_mesh(int64_t devices) {
  if (devices >= 1) return create_mesh({{"batch", devices}});
  throw ConfigError("ParameterServerStrategy, devices_per_worker", "at least 1", str(devices), "");
}

/// Throws if a variable or the optimizer is already in `group`: two copies of a variable would
/// diverge, and an optimizer would run a step per group.
void check_new(const VariableGroup& group, const std::vector<Variable>& variables,
               const OptimizerHandle& optimizer) {
  if (optimizer && group.optimizer && &*optimizer == &*group.optimizer) {
    throw ConfigError("place", "an optimizer is placed once", optimizer->class_name() + " again",
                      "place all its variables together, or make another optimizer");
  }
  for (const Variable& variable : variables) {
    for (const Variable& other : group.variables) {
      if (!variable.is(other)) continue;
      throw ConfigError("place", "a variable is placed once", variable.path() + " again",
                        "leave it out");
    }
  }
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(ParameterServerOptions options)
    : Strategy("ParameterServerStrategy", worker_mesh(options.devices_per_worker)),
      job_(std::make_shared<detail::ServerJob>(std::move(options), *this)),
      steps_(make_server_steps(job_, *this)) {}

ParameterServerStrategy::~ParameterServerStrategy() { job_->close(); }

TaskType ParameterServerStrategy::task_type() const { return job_->task_type(); }
int ParameterServerStrategy::task_index() const { return job_->task_index(); }

std::unique_ptr<StrategyScope> ParameterServerStrategy::scope() const {
  return std::make_unique<ServerScope>(*this, steps_);
}

void ParameterServerStrategy::place(const std::vector<Variable>& variables,
                                    const OptimizerHandle& optimizer) {
  for (const VariableGroup& group : job_->groups()) check_new(group, variables, optimizer);
  job_->place(variables, optimizer);
}

void ParameterServerStrategy::add_function(const std::string& name, ClosureFunction function) {
  job_->add_function(name, std::move(function));
}

void ParameterServerStrategy::add_dataset(const std::string& name, DatasetFunction function,
                                          const PerWorkerOptions& options) {
  job_->add_dataset(name, {std::move(function), options});
}

int ParameterServerStrategy::join() {
  job_->serve(0);
  return 0;
}

bool ParameterServerStrategy::job_over() const { return job_->over(); }

}  // namespace tessera::strategy
