#include <tessera/framework/parameter_server/cluster_coordinator.hpp>

#include <map>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/parameter_server/internal/rpc_value.hpp>
#include <tessera/framework/parameter_server/job/coordinator_runtime.hpp>
#include <tessera/framework/parameter_server/job/server_job.hpp>
#include <tessera/framework/parameter_server/worker/closure_queue.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

struct RemoteValue::State {
  std::shared_ptr<ClosureQueue> queue;
  ClosurePtr closure;
};

struct ClusterCoordinator::State {
  std::shared_ptr<ServerJob> job;
  std::map<std::string, int64_t> iterations = {};

  /// Calls `function` with the coordinator's runtime and records its error: if that ends the
  /// program, the job ends with it.
  template <class Function>
  auto call(const Function& function) {
    try {
      job->coordinator().throw_if_failed();
      return function(job->coordinator());
    } catch (const std::exception& error) {
      job->record_error(error.what());
      throw;
    }
  }
};

const ClosureValue& RemoteValue::fetch() const { return state_->queue->wait(state_->closure); }

bool RemoteValue::ready() const { return state_->queue->ready(state_->closure); }

int64_t RemoteValue::closure() const { return state_->closure->number(); }

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy)
    : state_(std::make_unique<State>(State{strategy.shared_job()})) {
  state_->call([this](CoordinatorRuntime&) {
    state_->job->connect();
    state_->job->send_new_groups();
  });
}

ClusterCoordinator::~ClusterCoordinator() = default;

RemoteValue ClusterCoordinator::schedule(const std::string& function, const ClosureValue& arguments,
                                         const std::vector<PerWorkerDataset>& datasets) {
  return state_->call([&](CoordinatorRuntime& coordinator) {
    if (state_->job->find_function(function) == nullptr) {
      throw ConfigError("schedule", "function must be the name of a registered function",
                        in_quotes(function), "call add_function() on all tasks");
    }
    if (static_cast<size_t>(coordinator.groups()) < state_->job->groups().size()) {
      state_->job->send_new_groups();
    }
    rpc::RunRequest request;
    request.set_job(coordinator.job());
    request.set_function(function);
    request.set_phase(coordinator.phase());
    *request.mutable_arguments() = to_message(arguments, "schedule, arguments");
    for (const PerWorkerDataset& dataset : datasets) {
      rpc::Dataset& sent = *request.add_datasets();
      sent.set_name(dataset.name);
      sent.set_iteration(dataset.iteration);
    }
    return RemoteValue(std::make_shared<RemoteValue::State>(RemoteValue::State{
        coordinator.closures(), coordinator.closures()->add(std::move(request))}));
  });
}

void ClusterCoordinator::join() {
  state_->call([](CoordinatorRuntime& coordinator) { coordinator.closures()->join(); });
}

bool ClusterCoordinator::done() {
  return state_->call(
      [](CoordinatorRuntime& coordinator) { return coordinator.closures()->done(); });
}

std::optional<RemoteValue> ClusterCoordinator::next_done() {
  return state_->call([](CoordinatorRuntime& coordinator) -> std::optional<RemoteValue> {
    const ClosurePtr closure = coordinator.closures()->next_done();
    if (!closure) return std::nullopt;
    return RemoteValue(
        std::make_shared<RemoteValue::State>(RemoteValue::State{coordinator.closures(), closure}));
  });
}

int64_t ClusterCoordinator::cancel_waiting() {
  return state_->call(
      [](CoordinatorRuntime& coordinator) { return coordinator.closures()->cancel_waiting(); });
}

std::vector<ClosureValue> ClusterCoordinator::fetch(const std::vector<RemoteValue>& values) {
  std::vector<ClosureValue> results;
  for (const RemoteValue& value : values) results.push_back(value.fetch());
  return results;
}

PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(const std::string& name) {
  return state_->call([&](CoordinatorRuntime&) {
    if (state_->job->find_dataset(name) == nullptr) {
      throw ConfigError("create_per_worker_dataset", "name must be that of a registered dataset",
                        in_quotes(name), "call add_dataset() on all tasks");
    }
    return PerWorkerDataset{name, ++state_->iterations[name]};
  });
}

void ClusterCoordinator::pull() {
  state_->call([this](CoordinatorRuntime& coordinator) {
    const std::vector<VariableGroup>& groups = state_->job->groups();
    for (int g = 0; g < coordinator.groups(); ++g) {
      const VariableGroup& group = groups[static_cast<size_t>(g)];
      if (group.used) coordinator.store().pull(g, group, true);
    }
  });
}

ClusterCoordinator::Counts ClusterCoordinator::counts() {
  return state_->call([this](CoordinatorRuntime& coordinator) {
    const auto seen = coordinator.closures()->counts();
    Counts counts{seen.scheduled, seen.done, seen.rescheduled, coordinator.workers_lost(),
                  seen.done_by_worker};
    counts.updates.resize(static_cast<size_t>(state_->job->servers()));
    for (int g = 0; g < coordinator.groups(); ++g) {
      const std::vector<StoreState> states = coordinator.store().states(g);
      for (size_t s = 0; s < states.size(); ++s) counts.updates[s] += states[s].updates;
    }
    return counts;
  });
}

}  // namespace tessera::strategy
