#include <tessera/framework/parameter_server/store/parameter_store.hpp>

#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/parameter_server/store/parameter_group.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

ParameterStore::ParameterStore(Executor executor) : executor_(std::move(executor)) {
  if (!executor_) executor_ = [](const std::function<void()>& work) { work(); };
}
ParameterStore::~ParameterStore() = default;

void ParameterStore::change(const std::function<void()>& work) const {
  std::exception_ptr error;
  executor_([&] {
    try {
      const c10::InferenceMode inference;
      const std::lock_guard lock(state_mutex_);
      work();
    } catch (...) {
      error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

void ParameterStore::add_group(int group, const std::vector<Variable>& variables,
                               const std::vector<Part>& parts, const OptimizerHandle& optimizer) {
  if (has_group(group)) {
    throw StateError(str("group ", group), "a group that is new to the store", "one that it has",
                     "add it once");
  }
  auto made = std::make_unique<Group>();
  made->optimizer = optimizer;
  {
    const std::lock_guard lock(state_mutex_);
    const DefaultMeshScope scope(create_mesh({{"batch", 1}}));
    for (const Part& part : parts) made->add(variables[part.variable], part);
  }
  const std::lock_guard lock(groups_mutex_);
  groups_[group] = std::move(made);
  added_.notify_all();
}

bool ParameterStore::has_group(int group) const {
  return wait_for_group(group, std::chrono::milliseconds(0));
}

bool ParameterStore::wait_for_group(int group, std::chrono::milliseconds patience) const {
  std::unique_lock lock(groups_mutex_);
  return added_.wait_for(lock, patience, [&] { return groups_.count(group) != 0; });
}

ParameterStore::Group& ParameterStore::find(int group) const {
  const std::lock_guard lock(groups_mutex_);
  const auto it = groups_.find(group);
  if (it != groups_.end()) return *it->second;
  throw ConfigError("group", str("one of the ", groups_.size(), " groups of the server"),
                    str(group), "define it first");
}

StoreState ParameterStore::assign(int group, const std::vector<PartTensor>& tensors, int64_t steps,
                                  std::optional<double> learning_rate) {
  Group& entry = find(group);
  entry.check(tensors, 0, std::numeric_limits<int>::max());
  if (steps < -1) throw ConfigError("steps", "a number of at least 0", str(steps), "send -1");
  if (learning_rate) entry.check_rate(*learning_rate);
  StoreState result;
  change([&] {
    for (const auto& [number, kind, tensor] : tensors) {
      Variable own = entry.tensor(number, kind);
      own.writable()[0].copy_(tensor);
    }
    if (entry.optimizer && steps >= 0) entry.optimizer->set_steps(steps);
    if (learning_rate) entry.optimizer->set_learning_rate(*learning_rate);
    ++entry.state.version;
    result = entry.current_state();
  });
  return result;
}

std::pair<StoreState, std::vector<PartTensor>> ParameterStore::pull(int group,
                                                                    int64_t known_version,
                                                                    bool slots) const {
  const Group& entry = find(group);
  const std::lock_guard lock(state_mutex_);
  std::pair<StoreState, std::vector<PartTensor>> result{entry.current_state(), {}};
  if (entry.state.version == known_version) return result;
  for (size_t p = 0; p < entry.parts.size(); ++p) {
    const std::vector<Variable>& tensors = entry.parts[p].tensors;
    const size_t count = slots ? tensors.size() : 1;
    for (size_t k = 0; k < count; ++k) {
      result.second.push_back(
          {static_cast<int>(p), static_cast<int>(k), tensors[k].value().blocks()[0]});
    }
  }
  return result;
}

std::pair<StoreState, bool> ParameterStore::push(int group, const PushId& id, bool step,
                                                 const std::vector<PartTensor>& tensors) {
  Group& entry = find(group);
  entry.check_push(id, step, tensors);
  std::pair<StoreState, bool> result;
  change([&] {
    result.second = !entry.is_new(id);
    if (!result.second) {
      // Counted before the changes: an update that fails midway is not retried.
      ++entry.state.version;
      ++entry.state.updates;
      if (step) entry.step(tensors);
      for (const auto& [number, kind, tensor] : tensors) {
        if (kind != -1) continue;
        Variable own = entry.tensor(number, kind);
        own.writable()[0].add_(tensor);
      }
    }
    result.first = entry.current_state();
  });
  return result;
}

std::pair<Shape, at::ScalarType> ParameterStore::tensor_spec(int group, int part, int kind) const {
  const Variable& own = find(group).tensor(part, kind);
  return {own.shape(), own.dtype()};
}

StoreState ParameterStore::state(int group) const {
  const Group& entry = find(group);
  const std::lock_guard lock(state_mutex_);
  return entry.current_state();
}

}  // namespace tessera::detail
