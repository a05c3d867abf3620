#include <tessera/framework/parameter_server/internal/server_steps.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/parameter_server/cluster_coordinator.hpp>
#include <tessera/framework/parameter_server/worker/step_closure.hpp>
#include <tessera/framework/training/callbacks/internal/learning_rate_access.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/internal/remote_steps.hpp>

namespace tessera::detail {

using namespace strategy;

namespace {

/// Closures queued per worker beyond the running one, so that it never waits for the coordinator.
constexpr int64_t waiting_per_worker = 3;

const char* function_name(Phase phase) { return phase == Phase::train ? "fit/train" : "fit/test"; }

/// Versions by which changes of weights and of the optimizer's state are detected.
struct Versions {
  std::vector<uint64_t> values;
  double learning_rate = 0;
  int64_t steps = 0;
  bool operator==(const Versions&) const = default;
};

Versions versions_of(const Model& model) {
  const Optimizer& optimizer = optimizer_of(model);
  Versions versions{{}, optimizer.learning_rate(), optimizer.steps()};
  const auto add = [&](const std::vector<Variable>& variables) {
    for (const Variable& v : variables) versions.values.push_back(v.value().tag()->version);
  };
  add(model.weights());
  add(optimizer.variables());
  return versions;
}

void check_weights(const Model& model, const Mesh& mesh) {
  for (const Variable& weight : model.weights()) {
    const Layout& layout = weight.layout();
    const bool replicated = layout.mesh() == mesh && layout.is_fully_replicated();
    if (replicated && !weight.placement().use) continue;
    throw ConfigError("fit", "with parameter servers weights must have the strategy's layouts",
                      str(weight.path(), " in ", layout.describe()),
                      "leave layouts and mesh out of compile(), and call it in the scope");
  }
}

void check_optimizer(const Model& model) {
  const Json config = optimizer_of(model).config();
  const auto it = config.find("gradient_accumulation_steps");
  if (it == config.end() || it->is_null()) return;
  throw ConfigError("fit", "with parameter servers every step sends its gradients",
                    str("gradient_accumulation_steps=", it->dump()),
                    "leave it out, and use larger batches");
}

[[noreturn]] void fail_different_ends(int64_t earlier, int64_t later) {
  throw ConfigError("fit", "a stream has the same batches on every worker",
                    str(earlier, " in one epoch on one worker, at least ", later, " on another"),
                    "start all tasks with the same program and data");
}

class ServerSteps final : public RemoteSteps {
 public:
  ServerSteps(std::shared_ptr<ServerJob> job, const ParameterServerStrategy& strategy)
      : job_(std::move(job)), strategy_(strategy), layouts_(strategy.layouts()) {}

  std::optional<History> work_for_leader(Trainer& trainer, const FitData& data,
                                         const FitOptions& options) override;
  void end(const History& history) override { job_->end_phase(history.to_json()); }
  void fail(const std::string& what) noexcept override { job_->fail(what); }

 protected:
  void send(Trainer& trainer, const FitData& data, const FitOptions& options) override;
  int64_t run_steps(const StepRange& range,
                    const std::function<bool(int64_t, const StepTotals&)>& done) override;
  void fetch(Trainer& trainer) override;

 private:
  /// Key of a placed model: its optimizer, and the id and trainability of each variable.
  using Placed = std::pair<const Optimizer*, std::vector<uint64_t>>;

  /// Registers functions and variables; to be called in the same order on every task.
  void prepare(const Model& model);
  void add_functions();
  const VariableGroup& group() const { return job_->groups().at(static_cast<size_t>(group_)); }
  void send_changes();
  int64_t cancel(int64_t next);

  std::shared_ptr<ServerJob> job_;
  const ParameterServerStrategy& strategy_;
  LayoutMap layouts_;
  std::map<Placed, int> groups_;
  int group_ = 0;
  /// Runs the steps of the present fit; shared with the registered functions.
  const std::shared_ptr<std::unique_ptr<StepMaker>> maker_ =
      std::make_shared<std::unique_ptr<StepMaker>>();

  // Coordinator only.
  std::unique_ptr<ClusterCoordinator> coordinator_;
  Model* model_ = nullptr;
  Versions sent_;
  std::map<int64_t, int64_t> steps_;  ///< unfinished steps by closure number
};

void ServerSteps::prepare(const Model& model) {
  check_weights(model, layouts_.mesh());
  check_optimizer(model);
  if (groups_.empty()) add_functions();
  Placed placed{&optimizer_of(model), {}};
  for (const Variable& weight : model.weights()) {
    placed.second.push_back(weight.id());
    placed.second.push_back(weight.trainable());
  }
  const auto [entry, inserted] = groups_.try_emplace(placed, 0);
  if (inserted) entry->second = job_->place(model.weights(), model.optimizer());
  group_ = entry->second;
  job_->use(group_);
}

void ServerSteps::add_functions() {
  for (const Phase phase : {Phase::train, Phase::test}) {
    const auto make = [phase, maker = maker_](WorkerContext& context) -> ClosureValue {
      if (*maker) return (*maker)->make(phase, context.arguments());
      throw StateError("fit", "a worker runs steps only during its fit", "a fit that is over",
                       "start all tasks with the same program");
    };
    job_->add_function(function_name(phase), make);
  }
}

std::optional<History> ServerSteps::work_for_leader(Trainer& trainer, const FitData& data,
                                                    const FitOptions& options) {
  if (job_->task_type() == TaskType::chief) return std::nullopt;
  Model& model = trainer.model();
  prepare(model);
  const auto over = c10::make_scope_exit([this] { maker_->reset(); });
  *maker_ = std::make_unique<StepMaker>(model, data, options, layouts_);
  const Json history = parse_json(job_->serve(job_->next_phase()), "fit");
  return History::from_json(history, JsonPath("fit"));
}

void ServerSteps::send(Trainer& trainer, const FitData&, const FitOptions&) {
  model_ = &trainer.model();
  steps_.clear();
  prepare(*model_);
  // Throws if the strategy no longer exists.
  job_->connect();
  if (!coordinator_) coordinator_ = std::make_unique<ClusterCoordinator>(strategy_);
  job_->begin_phase();
  job_->send_new_groups();
  sent_ = {};
  send_changes();
}

/// Sends weights or the learning rate if callbacks changed them between two runs.
void ServerSteps::send_changes() {
  const Versions present = versions_of(*model_);
  if (present == sent_) return;
  sent_.learning_rate = present.learning_rate;
  if (present == sent_) {
    job_->store().set_learning_rate(group_, group());
  } else {
    job_->store().assign(group_, group(), true);
  }
  sent_ = present;
}

int64_t ServerSteps::run_steps(const StepRange& range,
                               const std::function<bool(int64_t, const StepTotals&)>& done) {
  send_changes();
  const int64_t before = optimizer_of(*model_).steps() - range.first;
  const auto max_scheduled = static_cast<size_t>((1 + waiting_per_worker) * job_->workers());
  int64_t next = range.first;
  int64_t end_of_data = range.last, last_read = range.first;
  for (bool more = true;;) {
    while (more && next < range.last && steps_.size() < max_scheduled) {
      const RemoteValue value = coordinator_->schedule(
          function_name(range.phase),
          to_closure(StepNumber{range.pass, range.offset + next, before + next}));
      steps_[value.closure()] = next++;
    }
    if (steps_.empty()) break;
    const std::optional<RemoteValue> value = coordinator_->next_done();
    if (!value) {
      throw StateError("fit", "only fit may take closures while it runs",
                       "closures that were taken elsewhere", "use one ClusterCoordinator");
    }
    const auto ended = steps_.extract(value->closure());
    if (ended.empty()) continue;
    const StepTotals totals = totals_of(value->fetch());
    if (totals.rows == 0) {
      // Later steps that are scheduled find no batch either.
      end_of_data = std::min(end_of_data, ended.mapped());
      more = false;
      continue;
    }
    last_read = std::max(last_read, ended.mapped() + 1);
    if (done(ended.mapped(), totals) || !more) continue;
    more = false;
    next = cancel(next);
  }
  if (last_read > end_of_data) fail_different_ends(end_of_data, last_read);
  return std::min(next, end_of_data) - range.first;
}

/// Cancels the steps that have not started, which are the last before `next`; returns the new
/// `next`.
int64_t ServerSteps::cancel(int64_t next) {
  for (int64_t left = coordinator_->cancel_waiting(); left > 0; --left, --next) {
    steps_.erase(std::prev(steps_.end()));
  }
  return next;
}

void ServerSteps::fetch(Trainer& trainer) {
  job_->store().pull(group_, group(), true);
  sent_ = versions_of(trainer.model());
}

}  // namespace

std::shared_ptr<StepExecutor> make_server_steps(const std::shared_ptr<ServerJob>& job,
                                                const ParameterServerStrategy& strategy) {
  return std::make_shared<ServerSteps>(job, strategy);
}

}  // namespace tessera::detail
