#include <tessera/framework/parameter_server/store/parameter_group.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/optimizer/internal/part_updater.hpp>

namespace tessera::detail {

namespace {

std::string part_name(int number) { return str("part ", number); }

/// Wraps a gradient in a DTensor without copying; it is only read.
DTensor as_gradient(const at::Tensor& tensor, const Variable& of) {
  return DTensor(of.value().sharding(), {tensor.contiguous()});
}

Variable make_part(const Variable& variable, const Part& part) {
  VariableSpec spec{variable.path(), part.shape, variable.dtype(), Zeros()};
  spec.trainable = variable.trainable();
  spec.constraint = variable.spec().constraint;
  Variable made(spec);
  made.value();
  return made;
}

}  // namespace

std::vector<Variable> ParameterStore::Group::build_slots(const Variable& part,
                                                         const Variable& variable) const {
  PartUpdater(optimizer).build(part, variable);
  const std::vector<Variable> slots = optimizer->variables_of(part);
  // Initialize slots now, as pulls must not change anything.
  for (const Variable& slot : slots) slot.value();
  return slots;
}

void ParameterStore::Group::add(const Variable& variable, const Part& part) {
  StoredPart& stored = parts.emplace_back(StoredPart{{make_part(variable, part)}});
  stored.trained = variable.trainable() && optimizer;
  if (!stored.trained) return;
  for (const Variable& slot : build_slots(stored.tensors[0], variable))
    stored.tensors.push_back(slot);
  if (step_counter.defined()) return;
  step_counter = Variable(VariableSpec{"step", {0}, at::kFloat, Zeros()});
  build_slots(step_counter, step_counter);
}

const ParameterStore::Group::StoredPart& ParameterStore::Group::part(int number) const {
  if (number >= 0 && static_cast<size_t>(number) < parts.size()) {
    return parts[static_cast<size_t>(number)];
  }
  throw ConfigError(part_name(number), str("this server has ", parts.size(), " parts of the group"),
                    str(number), "send parts of the server's own plan");
}

const Variable& ParameterStore::Group::tensor(int number, int kind) const {
  const StoredPart& stored = part(number);
  if (kind == -1) return stored.tensors[0];
  if (kind >= 0 && static_cast<size_t>(kind) < stored.tensors.size()) {
    return stored.tensors[static_cast<size_t>(kind)];
  }
  throw ConfigError(stored.tensors[0].path(),
                    str("tensors of kinds from -1 to ", stored.tensors.size() - 1), str(kind),
                    "use the same optimizer on all tasks");
}

void ParameterStore::Group::check(const std::vector<PartTensor>& tensors, int min_kind,
                                  int max_kind) const {
  std::set<std::pair<int, int>> received;
  for (const auto& [number, kind, tensor] : tensors) {
    const Variable& own = this->tensor(number, kind);
    if (kind < min_kind || kind > max_kind) {
      throw ConfigError(own.path(), "values are assigned, gradients and differences pushed",
                        str("kind ", kind), "send it by the other call");
    }
    if (!received.emplace(number, kind).second) {
      throw ConfigError(own.path(), "each tensor once", str(part_name(number), " twice"),
                        "send it once");
    }
    if (!tensor.defined() || tensor.dtype() != own.dtype()) {
      throw ConfigError(own.path(), str("a tensor of ", dtype_name(own.dtype())),
                        tensor.defined() ? dtype_name(tensor.scalar_type()) : "none",
                        "convert it first");
    }
    if (tensor.sizes() == own.shape()) continue;
    throw ShapeError(own.path(), str(part_name(number), " has shape ", to_string(own.shape())),
                     to_string(tensor.sizes().vec()), "partition variables by the server's plan");
  }
}

void ParameterStore::Group::check_push(const PushId& id, bool step,
                                       const std::vector<PartTensor>& tensors) const {
  if (id.closure < 1 || id.number < 0 || id.done_below < 0 || id.done_below > id.closure) {
    throw ConfigError(
        "push", "a closure from 1, a number from 0, and a closure not done yet",
        str("closure ", id.closure, ", number ", id.number, ", done below ", id.done_below),
        "number pushes by closure");
  }
  check(tensors, -1, 0);
  for (const auto& [number, kind, tensor] : tensors) {
    if (kind == -1 || (step && part(number).trained)) continue;
    throw ConfigError(part(number).tensors[0].path(),
                      step ? "a variable that is trained" : "gradients in a step only",
                      "a gradient", "send a difference");
  }
  if (!step || step_counter.defined()) return;
  throw ConfigError("push", "steps where variables are trained", "a step", "send no step");
}

void ParameterStore::Group::check_rate(double rate) const {
  if (std::isfinite(rate) && rate >= 0 && optimizer && !optimizer->has_schedule()) return;
  throw ConfigError("learning rate", "a rate of at least 0 for an optimizer without a schedule",
                    str(rate), "set no rate");
}

bool ParameterStore::Group::is_new(const PushId& id) {
  if (id.done_below > done_below) {
    done_below = id.done_below;
    seen.erase(seen.begin(), seen.lower_bound({done_below, 0}));
  }
  if (id.closure < done_below) return false;
  return seen.emplace(id.closure, id.number).second;
}

void ParameterStore::Group::step(const std::vector<PartTensor>& tensors) {
  std::vector<Variable> variables{step_counter};
  std::vector<DTensor> gradients{as_gradient(at::empty({0}), step_counter)};
  for (const auto& [number, kind, tensor] : tensors) {
    if (kind != 0) continue;
    variables.push_back(part(number).tensors[0]);
    gradients.push_back(as_gradient(tensor, variables.back()));
  }
  PartUpdater(optimizer).apply(gradients, variables);
}

StoreState ParameterStore::Group::current_state() const {
  StoreState result = state;
  if (optimizer) result.steps = optimizer->steps();
  return result;
}

}  // namespace tessera::detail
