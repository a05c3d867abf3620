#include <tessera/framework/parameter_server/worker/worker_variables.hpp>

#include <ATen/ops/sub.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/update_strategy.hpp>

namespace tessera::detail {

/// Update strategy that sends an optimizer's gradients to the servers.
class WorkerVariables::GradientSender final : public UpdateStrategy {
 public:
  GradientSender(WorkerVariables& to, const Optimizer& of) : to_(to), of_(of) {}
  void update(const std::vector<Variable>& variables,
              const std::vector<DTensor>& gradients) override {
    to_.push_gradients(of_, variables, gradients);
  }

 private:
  WorkerVariables& to_;
  const Optimizer& of_;
};

WorkerVariables::WorkerVariables(const std::vector<VariableGroup>& groups, size_t count,
                                 StoreClient& store, const PushId& id)
    : groups_(groups), count_(count), store_(store), next_(id), pulled_(count) {
  pull();
  for (size_t g = 0; g < count_; ++g) {
    if (!groups_[g].optimizer) continue;
    Optimizer& optimizer = *groups_[g].optimizer;
    optimizer.set_update_strategy(std::make_shared<GradientSender>(*this, optimizer));
    optimizer.set_steps(id.closure - 1);
  }
}

WorkerVariables::~WorkerVariables() {
  for (size_t g = 0; g < count_; ++g) {
    if (groups_[g].optimizer) groups_[g].optimizer->set_update_strategy(nullptr);
  }
}

void WorkerVariables::pull() {
  push_assigned();
  for (size_t g = 0; g < count_; ++g) {
    pulled_[g].clear();
    if (!groups_[g].used) continue;
    store_.pull(static_cast<int>(g), groups_[g], false);
    for (const Variable& variable : groups_[g].variables) {
      const DTensor& value = variable.value();
      pulled_[g].push_back({value, value.tag()->version});
    }
  }
}

void WorkerVariables::push(size_t group, const std::vector<at::Tensor>& gradients,
                           const std::vector<at::Tensor>& added) {
  store_.push(static_cast<int>(group), groups_[group], next_, gradients, added);
  ++next_.number;
}

void WorkerVariables::push_gradients(const Optimizer& optimizer,
                                     const std::vector<Variable>& variables,
                                     const std::vector<DTensor>& gradients) {
  std::vector<bool> sent(variables.size());
  for (size_t g = 0; g < count_; ++g) {
    const VariableGroup& group = groups_[g];
    if (!group.used || !group.optimizer || &*group.optimizer != &optimizer) continue;
    std::vector<at::Tensor> full_gradients(group.variables.size());
    bool any = false;
    for (size_t v = 0; v < variables.size(); ++v) {
      for (size_t i = 0; i < group.variables.size(); ++i) {
        if (!group.variables[i].is(variables[v])) continue;
        full_gradients[i] = gradients[v].full();
        sent[v] = any = true;
      }
    }
    if (any) push(g, full_gradients, std::vector<at::Tensor>(full_gradients.size()));
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    if (sent[v]) continue;
    throw StateError(variables[v].path(), "a trained variable must be on the parameter servers",
                     "one that was not placed with its optimizer", "pass it to place()");
  }
}

at::Tensor WorkerVariables::assigned(size_t group, size_t variable) {
  const DTensor& now = groups_[group].variables[variable].value();
  const Pulled& before = pulled_[group][variable];
  if (now.tag()->version == before.version) return {};
  const at::Tensor current = now.full();
  if (current.scalar_type() == at::kBool) {
    throw ConfigError(groups_[group].variables[variable].path(),
                      "a variable that closures assign must be numeric, as its difference is sent",
                      "bool", "use an integer dtype");
  }
  return at::sub(current, before.value.full());
}

void WorkerVariables::push_assigned() {
  for (size_t g = 0; g < count_; ++g) {
    std::vector<at::Tensor> added(pulled_[g].size());
    bool any = false;
    for (size_t i = 0; i < added.size(); ++i) {
      added[i] = assigned(g, i);
      any = any || added[i].defined();
    }
    if (any) push(g, std::vector<at::Tensor>(added.size()), added);
    pulled_[g].clear();
  }
}

}  // namespace tessera::detail
