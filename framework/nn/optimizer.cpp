#include <tessera/framework/nn/optimizer.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/registry.hpp>
#include <tessera/framework/ops/dispatch.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/execution.hpp>
#include <tessera/framework/tensor/relayout.hpp>

namespace tessera {
namespace {

/// Where a variable is updated: where it rests, or cut further with its slots (ZeRO).
const Layout& update_layout(const Variable& variable) {
  const Placement& placement = variable.placement();
  return placement.slots ? *placement.slots : placement.layout;
}

void check_not_negative(const char* what, double value) {
  if (value >= 0) return;
  throw ConfigError("optimizer", str(what, " is a number of at least 0"), str(value),
                    "give a positive one");
}

}  // namespace

/// A variable in the blocks of its update.
struct Optimizer::Target {
  std::vector<UpdateArgs> blocks;
  DTensor cut;  ///< a weight that rests in another layout: its value in the update's
};

Optimizer::Optimizer(double learning_rate, double weight_decay) : weight_decay_(weight_decay) {
  set_learning_rate(learning_rate);
  check_not_negative("weight_decay", weight_decay);
}

void Optimizer::set_learning_rate(double rate) {
  check_not_negative("learning_rate", rate);
  learning_rate_ = rate;
}

void Optimizer::build(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) build_slots(variable);
}

void Optimizer::build_slots(const Variable& variable) {
  const Placement placement{variable.shape(), update_layout(variable)};
  auto [found, fresh] = slots_.try_emplace(variable.id());
  if (fresh) {
    order_.push_back(variable.id());
    for (const std::string& name : slot_names()) {
      const std::string path = str(snake_case(class_name()), "/", variable.path(), "/", name);
      found->second.emplace_back(VariableSpec{path, variable.shape(), variable.dtype(), "zeros"});
      found->second.back().set_trainable(false);
    }
  }
  for (Variable& slot : found->second) slot.place(placement);
}

const std::vector<Variable>& Optimizer::slots(const Variable& variable) const {
  const auto found = slots_.find(variable.id());
  if (found != slots_.end()) return found->second;
  throw StateError(variable.path(), "the optimizer was built for this variable", "no slots for it",
                   "call build() or apply() with it first");
}

std::vector<Variable> Optimizer::variables() const {
  std::vector<Variable> all;
  for (uint64_t id : order_) {
    const std::vector<Variable>& slots = slots_.at(id);
    all.insert(all.end(), slots.begin(), slots.end());
  }
  return all;
}

void Optimizer::check_step(const std::vector<DTensor>& gradients,
                           const std::vector<Variable>& variables) const {
  if (gradients.size() != variables.size()) {
    throw ConfigError(class_name(), "one gradient for each variable",
                      str(gradients.size(), " gradients for ", variables.size(), " variables"),
                      "pass an undefined one for a variable without a gradient");
  }
  bool any = false;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    any = true;
    if (gradients[i].shape() == variables[i].shape()) continue;
    throw ShapeError(variables[i].path(),
                     "a gradient has its variable's shape " + to_string(variables[i].shape()),
                     to_string(gradients[i].shape()), "pass gradients in the variables' order");
  }
  if (any) return;
  throw StateError(class_name(), "a gradient for some variable", "none",
                   "check that the loss depends on the variables");
}

Optimizer::Target Optimizer::target_of(Variable& variable, const DTensor& gradient) {
  Target target;
  std::vector<Variable>& slots = slots_.at(variable.id());
  ShardingPtr form = variable.value().sharding();
  if (!slots.empty()) {
    form = slots[0].value().sharding();
  } else if (!(update_layout(variable) == variable.layout())) {
    form = intern(variable.shape(), variable.dtype(), update_layout(variable));
  }
  const DTensor reduced = relayout_to(ops::cast(gradient, variable.dtype()), form);
  const bool in_place = form == variable.value().sharding();
  if (!in_place) {
    const DTensor pieces = relayout_to(variable.value(), form);
    Blocks copies;
    for (const at::Tensor& block : pieces.blocks()) {
      copies.push_back(block.contiguous().clone());
    }
    target.cut = DTensor(form, std::move(copies));
  }
  const Blocks& weights = in_place ? variable.writable() : target.cut.blocks();
  for (size_t b = 0; b < form->blocks.size(); ++b) {
    if (form->blocks[b].empty) continue;
    UpdateArgs args{
        weights[b], reduced.blocks()[b].contiguous(), {}, learning_rate_, iterations_ + 1};
    for (Variable& slot : slots) args.slots.push_back(slot.value().blocks()[b]);
    target.blocks.push_back(std::move(args));
  }
  return target;
}

void Optimizer::apply(const std::vector<DTensor>& gradients,
                      const std::vector<Variable>& variables) {
  const NoRecording untaped;
  const c10::InferenceMode inference;
  check_step(gradients, variables);
  std::vector<Variable> changed;
  std::vector<Target> targets;
  std::vector<UpdateArgs> blocks;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].defined()) continue;
    build_slots(variables[i]);
    for (Variable& slot : slots_.at(variables[i].id())) slot.writable();
    changed.push_back(variables[i]);
    targets.push_back(target_of(changed.back(), gradients[i]));
    std::move(targets.back().blocks.begin(), targets.back().blocks.end(),
              std::back_inserter(blocks));
  }
  if (weight_decay_ > 0) {
    for (UpdateArgs& args : blocks) args.weight.mul_(1 - learning_rate_ * weight_decay_);
  }
  update_all(blocks);
  for (size_t i = 0; i < changed.size(); ++i) {
    if (targets[i].cut.defined()) changed[i].assign(targets[i].cut);
  }
  ++iterations_;
}

void Optimizer::update_all(const std::vector<UpdateArgs>& blocks) const {
  int64_t largest = 0;
  int64_t total = 0;
  for (const UpdateArgs& args : blocks) {
    largest = std::max(largest, args.weight.numel());
    total += args.weight.numel();
  }
  // ATen shares the elements of a large block among threads better than blocks can be shared out.
  const bool parallel = total >= inline_elements && largest * worker_count() <= total;
  run_blocks(static_cast<int64_t>(blocks.size()), parallel,
             [&](int64_t b) { update(blocks[static_cast<size_t>(b)]); });
}

}  // namespace tessera
