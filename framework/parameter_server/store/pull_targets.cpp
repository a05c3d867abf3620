#include <tessera/framework/parameter_server/store/pull_targets.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/parameter_server/store/tensor_stream.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

std::vector<Variable> variable_and_slots(const VariableGroup& group, size_t variable) {
  std::vector<Variable> tensors{group.variables[variable]};
  if (!group.optimizer || !group.plan.trained[variable]) return tensors;
  group.optimizer->build(tensors);
  for (const Variable& slot : group.optimizer->variables_of(tensors[0])) tensors.push_back(slot);
  return tensors;
}

PullTargets::PullTargets(const VariableGroup& group, bool slots) {
  for (size_t v = 0; v < group.variables.size(); ++v) {
    std::vector<Target>& targets = targets_.emplace_back();
    if (!slots) {
      targets.push_back({group.variables[v]});
      continue;
    }
    for (const Variable& tensor : variable_and_slots(group, v)) targets.push_back({tensor});
  }
}

void PullTargets::open(Target& target) {
  const DTensor& value = target.variable.value();
  target.in_place = value.layout().is_fully_replicated() && !value.blocks().empty() &&
                    value.blocks()[0].is_cpu() && target.variable.spec().memory_order.empty();
  target.tensor = target.in_place ? target.variable.writable()[0] : value.full().clone();
}

void PullTargets::close(Target& target) {
  const at::Tensor tensor = std::exchange(target.tensor, {});
  if (!target.in_place) {
    target.variable.assign(pack(tensor, target.variable.layout()));
    return;
  }
  const Blocks& blocks = target.variable.value().blocks();
  for (size_t b = 1; b < blocks.size(); ++b) blocks[b].copy_(tensor);
}

std::span<std::byte> PullTargets::begin(const Part& part, int kind) {
  std::vector<Target>& targets = targets_[part.variable];
  if (kind < 0 || static_cast<size_t>(kind) >= targets.size()) {
    throw ConfigError(targets[0].variable.path(),
                      str("tensors of kinds from 0 to ", targets.size() - 1), str(kind),
                      "use the same optimizer on all tasks");
  }
  Target& target = targets[static_cast<size_t>(kind)];
  const std::lock_guard lock(mutex_);
  if (!target.tensor.defined()) open(target);
  return bytes_of(target.tensor, part);
}

void PullTargets::finish() {
  const c10::InferenceMode inference;
  for (std::vector<Target>& targets : targets_) {
    for (Target& target : targets) {
      if (target.tensor.defined()) close(target);
    }
  }
}

}  // namespace tessera::detail
