#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/mesh/internal/view.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/optimizer/internal/moving_averages.hpp>
#include <tessera/framework/optimizer/internal/row_update.hpp>
#include <tessera/framework/optimizer/internal/stored_slots.hpp>
#include <tessera/framework/optimizer/internal/update_step.hpp>
#include <tessera/framework/optimizer/internal/update_strategy.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns a copy of a variable's value with another sharding.
DTensor copy_in_layout(const Variable& variable, const ShardingPtr& sharding) {
  const DTensor moved = relayout_to(variable.value(), sharding);
  Blocks copies;
  for (size_t b = 0; b < sharding->blocks.size(); ++b) {
    const DeviceMemory::For memory(sharding->blocks[b].devices.front());
    copies.push_back(copy_in_order(moved.blocks()[b], variable.spec().memory_order));
  }
  return DTensor(sharding, std::move(copies));
}

/// Whether a gradient has a dtype in which no update computes.
bool is_narrow(const DTensor& gradient, const Variable& variable) {
  return at::isReducedFloatingType(gradient.dtype()) && gradient.dtype() != variable.dtype();
}

/// Returns a gradient with its blocks in the memory order of its variable, in which a bucket puts
/// them: sums of its elements are rounded in the order of memory.
DTensor in_variable_order(const Variable& variable, const DTensor& gradient) {
  if (gradient.is_row_sparse()) return gradient;
  const MemoryOrder& order = variable.spec().memory_order;
  const std::vector<BlockInfo>& infos = gradient.sharding()->blocks;
  Blocks blocks = gradient.blocks();
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (is_in_order(blocks[b], order)) continue;
    const DeviceMemory::For memory(infos[b].devices.front());
    blocks[b] = copy_in_order(blocks[b], order);
  }
  return DTensor(gradient.sharding(), std::move(blocks));
}

/// Returns copies of the blocks of variables on GPUs.
std::vector<at::Tensor> copies_of(const std::vector<Variable>& variables) {
  std::vector<DTensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  const std::vector<at::Tensor> blocks = blocks_of(values);
  std::vector<at::Tensor> copies;
  for (const at::Tensor& block : blocks) copies.push_back(at::empty_like(block));
  for (const std::vector<size_t>& indices : group_by_device_and_dtype(blocks)) {
    std::vector<at::Tensor> list = select(copies, indices);
    const c10::DeviceGuard guard(list[0].device());
    at::_foreach_copy_(list, select(blocks, indices));
  }
  return copies;
}

/// Multiplies each block by its factor.
void scale_blocks(const std::vector<at::Tensor>& blocks, const std::vector<at::Scalar>& factors) {
  for_each_list(
      blocks, [&](size_t b) { blocks[b].mul_(factors[b]); },
      [&](const std::vector<size_t>& indices) {
        std::vector<at::Scalar> group_factors;
        for (size_t b : indices) group_factors.push_back(factors[b]);
        std::vector<at::Tensor> list = select(blocks, indices);
        at::_foreach_mul_(list, group_factors);
      });
}

}  // namespace

void Optimizer::apply(const std::vector<DTensor>& gradients,
                      const std::vector<Variable>& variables) {
  if (!tracer()) return apply_traced(gradients, variables);
  // A captured step, which runs this again, keeps the optimizer.
  const std::shared_ptr<Optimizer> self = weak_from_this().lock();
  if (!self) stop_tracing("a step was made by an optimizer that no OptimizerHandle holds");
  traced(gradients, [this, self, variables](std::span<const DTensor> in) {
    apply_traced({in.begin(), in.end()}, variables);
  });
}

void Optimizer::apply_traced(const std::vector<DTensor>& gradients,
                             const std::vector<Variable>& variables) {
  // The weights of a model that an abstract step builds get slots once they are placed.
  const auto known = [this](const Variable& variable) { return knows(variable); };
  if (is_abstract() && !std::all_of(variables.begin(), variables.end(), known)) return;
  const ProfileSpan span(SpanKind::optimizer, "apply");
  const UpdateScope scope;
  check_step(gradients, variables);
  warn_of_unused_exclusions(variables);
  build(variables);
  const Step step = reduced(gradients, variables);
  std::vector<Variable> updated;
  for (const State* state : step.states) updated.push_back(state->variable);
  apply_reduced(*this, step.gradients, updated);
}

void Optimizer::apply_gradients(
    const std::vector<std::pair<DTensor, Variable>>& gradients_and_variables) {
  std::vector<DTensor> gradients;
  std::vector<Variable> variables;
  for (const auto& [gradient, variable] : gradients_and_variables) {
    gradients.push_back(gradient);
    variables.push_back(variable);
  }
  apply(gradients, variables);
}

void Optimizer::apply_reduced(Optimizer& inner, const std::vector<DTensor>& gradients,
                              const std::vector<Variable>& variables) {
  inner.take_gradients(gradients, variables);
  if (!is_abstract()) ++inner.steps_;
}

void Optimizer::apply_unless_skipped(const ScalarOnDevices& skip, Optimizer& inner,
                                     const std::vector<DTensor>& gradients,
                                     const std::vector<Variable>& variables) {
  std::vector<Variable> changed = inner.changed_if_skipped();
  const std::vector<at::Tensor> before = copies_of(changed);
  {
    inner.skip_ = &skip;
    const auto cleanup = c10::make_scope_exit([&inner] { inner.skip_ = nullptr; });
    apply_reduced(inner, gradients, variables);
  }
  ScalarOnDevices skipped;
  for (const auto& [gpu, number] : skip) skipped[gpu] = number.to(at::kBool);
  auto previous = before.begin();
  for (Variable& variable : changed) {
    for (at::Tensor block : writable_blocks(variable)) {
      at::where_out(block, skipped.at(block.device()), *previous++, block);
    }
  }
}

/// Returns the variables that a step changes although its skip_on() is 1.
std::vector<Variable> Optimizer::changed_if_skipped() const {
  std::vector<Variable> changed;
  if (!supports_found_inf()) {
    changed = built_for();
    for (const Variable& owned : variables()) changed.push_back(owned);
    return changed;
  }
  for (uint64_t id : order_) {
    const State& state = states_.at(id);
    const bool overwritten = options_.ema_overwrite_frequency || state.variable.spec().constraint;
    if (overwritten || state.decay > 0) changed.push_back(state.variable);
    if (state.average.defined()) changed.push_back(state.average);
    if (state.accumulator.defined()) changed.push_back(state.accumulator);
  }
  return changed;
}

void Optimizer::take_gradients(const std::vector<DTensor>& gradients,
                               const std::vector<Variable>& variables) {
  const GradientAccumulation accumulation(*this);
  Step step{{}, gradients};
  for (const Variable& variable : variables) step.states.push_back(&states_.at(variable.id()));
  if (!takes_rows()) {
    for (const DTensor& gradient : step.gradients) gradient.blocks();  // makes it dense
  }
  {
    const RowsAsValues values(step.gradients);
    if (!accumulation.add(step)) return;
    if (clips(options_)) step.gradients = clip_gradients(step.gradients, options_);
  }
  // They may have been moved, scaled or clipped.
  for (const DTensor& gradient : step.gradients) {
    DeviceMemory::label(gradient, MemoryUse::gradients);
  }
  if (strategy_) {
    delegate_update(step);
  } else {
    update_weights(step);
  }
  accumulation.reset();
  if (!strategy_) finish(step);
}

/// Runs one update with gradients from an UpdateStrategy.
void Optimizer::apply_ready(const std::vector<DTensor>& gradients,
                            const std::vector<Variable>& variables) {
  const UpdateScope scope;
  const ProfileSpan span(SpanKind::optimizer, "apply");
  check_step(gradients, variables);
  build(variables);
  const Step step = step_of(gradients, variables);
  update_weights(step);
  finish(step);
  steps_ += options_.gradient_accumulation_steps.value_or(1);
}

void Optimizer::finish(const Step& step) const {
  if (averages_) update_averages();
  constrain(step);
}

/// Updates the moving averages, which overwrite the weights every ema_overwrite_frequency
/// iterations.
void Optimizer::update_averages() const {
  averages_->update(iterations() == 0 ? 0 : options_.ema_momentum);
  const auto every = options_.ema_overwrite_frequency;
  if (every && (iterations() + 1) % *every == 0) averages_->overwrite();
}

void Optimizer::delegate_update(const Step& step) const {
  if (is_abstract()) return;
  std::vector<Variable> variables;
  std::vector<DTensor> gradients;
  for (size_t i = 0; i < step.states.size(); ++i) {
    variables.push_back(step.states[i]->variable);
    gradients.push_back(ops::cast(step.gradients[i], variables.back().dtype()));
  }
  strategy_->update(variables, gradients);
}

/// Returns the sharding in which a variable is updated: that of its slots, or its own.
ShardingPtr Optimizer::update_sharding(const State& state) const {
  const Variable& variable = state.variable;
  for (const Variable& owned : variables_of(variable)) {
    // Most accumulators have no value.
    if (owned.is(state.accumulator)) continue;
    if (owned.shape() == variable.shape()) return owned.value().sharding();
  }
  if (update_layout(variable) == variable.layout()) return variable.value().sharding();
  return intern(variable.shape(), variable.dtype(), abstract_layout(update_layout(variable)));
}

/// Whether the reducer takes a gradient: one that is not in the layout of its variable's update, or
/// that it checks, since other processes have other parts of it.
bool Optimizer::needs_reduction(const Variable& variable, const DTensor& gradient) const {
  // The weights of a model that an abstract step builds get slots once they are placed.
  if (is_abstract() && !knows(variable)) return false;
  // Other processes reduce the gradients of a stage that this one lacks.
  if (!is_abstract() && is_elsewhere(gradient.mesh())) return false;
  if (!is_abstract() && !gradient.mesh().is_local()) return true;
  return !(gradient.layout() == abstract_layout(update_layout(variable)));
}

/// Begins the reduction of a gradient to the layout of its variable's update, unless that was done.
/// If gradients are added up first, apply() adds this one to the sum: a step that fails before, or
/// whose gradients are changed, leaves the sum as it was.
void Optimizer::reduce(const Variable& variable, const DTensor& gradient, bool in_apply) {
  if (!needs_reduction(variable, gradient)) return;
  State& state = states_.at(variable.id());
  const ShardingPtr target = update_sharding(state);
  const GradientAccumulation accumulation(*this);
  const DimMask late = accumulation.dims_reduced_late(variable, gradient, target->layout);
  if (late == 0) return reducer_->ready(variable, gradient, target);
  const Layout& layout = gradient.layout();
  const Layout partial = variable.placement().reduce_at_end
                             ? layout
                             : target->layout.with_partial(late, layout.partial_kind());
  reducer_->scatter(variable, gradient, intern(gradient.shape(), gradient.dtype(), partial));
  if (!in_apply) return;
  if (is_abstract()) return reducer_->ready(variable, gradient, target);
  accumulation.add_partial_sum(state, gradient);
  state.added = true;
  if (accumulation.is_update_step()) reducer_->ready(variable, state.partial_sum, target);
}

std::function<void(size_t, const DTensor&)> Optimizer::reduce_when_ready(
    const std::vector<Variable>& variables) {
  struct Ready {
    std::vector<Variable> variables;
    bool built = false;
  };
  // Shared, since a captured step keeps it.
  const auto ready = std::make_shared<Ready>(Ready{variables});
  return [this, ready](size_t i, const DTensor& gradient) {
    const Variable& variable = ready->variables[i];
    if (variable.placement().reduce_at_end || !needs_reduction(variable, gradient)) return;
    traced(std::span(&gradient, 1), [this, ready, i](std::span<const DTensor> in) {
      const UpdateScope scope;
      if (!std::exchange(ready->built, true)) build(ready->variables);
      reduce(ready->variables[i], in[0], false);
    });
  };
}

Optimizer::Step Optimizer::reduced(const std::vector<DTensor>& gradients,
                                   const std::vector<Variable>& variables) {
  const auto cleanup = c10::make_scope_exit([this] { reducer_->reset(); });
  PlannedTensors* const planned = planned_tensors();
  const auto note = [&](size_t i) {
    const bool sum = options_.gradient_accumulation_steps && variables[i].placement().reduce_at_end;
    planned->gradients.push_back(
        {variables[i].path(),
         sum ? sharding_of_update(gradients[i], variables[i]) : gradients[i].sharding()});
  };
  // In reverse, the order in which a backward pass would have produced the remaining gradients.
  for (size_t i = variables.size(); i-- > 0;) {
    if (!gradients[i].defined()) continue;
    const bool whole = variables[i].placement().reduce_at_end;
    if (planned && whole) note(i);
    reduce(variables[i], gradients[i], true);
  }
  reducer_->finish();
  for (size_t i = variables.size(); planned && i-- > 0;) {
    if (gradients[i].defined() && !variables[i].placement().reduce_at_end) note(i);
  }
  return step_of(gradients, variables);
}

/// Reshards the gradients to the shardings of the updates; leaves out those that are added to
/// partial sums. Collective.
Optimizer::Step Optimizer::step_of(const std::vector<DTensor>& gradients,
                                   const std::vector<Variable>& variables) {
  Step step;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].defined()) continue;
    State& state = states_.at(variables[i].id());
    const CommLabel label(variables[i].path());
    reducer_->log(gradients[i]);
    DTensor gradient = gradients[i];
    if (std::exchange(state.added, false)) {
      if (!GradientAccumulation(*this).is_update_step()) continue;
      gradient = std::exchange(state.partial_sum, DTensor());
      state.is_sum = true;
      reducer_->log(gradient);
    }
    const bool narrow = is_narrow(gradient, variables[i]);
    if (!narrow) gradient = ops::cast(gradient, variables[i].dtype());
    const ShardingPtr target = update_sharding(state);
    const ShardingPtr moved =
        narrow ? intern(target->shape, gradient.dtype(), target->layout, target->groups) : target;
    gradient = relayout_to(gradient, moved);
    step.states.push_back(&state);
    step.gradients.push_back(world_size_invariant() && !is_abstract()
                                 ? in_variable_order(variables[i], gradient)
                                 : gradient);
  }
  return step;
}

void Optimizer::update_weights(const Step& step) {
  const double rate = learning_rate();
  std::vector<VariableUpdate> updates;
  std::vector<at::Tensor> decaying;
  std::vector<at::Scalar> decay_factors;
  for (size_t i = 0; i < step.states.size(); ++i) {
    State& state = *step.states[i];
    const DTensor& gradient = step.gradients[i];
    // Before the variable changes, since a slot may start as a copy of it.
    for (Variable& slot : state.slots) {
      if (StoredSlots::rests(slot) && !is_abstract()) {
        StoredSlots::put_away(slot);
      } else {
        writable_blocks(slot);
      }
    }
    const ShardingPtr sharding = sharding_of_update(gradient, state.variable);
    const bool resharded = sharding != state.variable.value().sharding();
    if (!resharded) writable_blocks(state.variable);
    const DTensor weight =
        resharded ? copy_in_layout(state.variable, sharding) : state.variable.value();
    const bool lazy = options_.lazy_rows && gradient.is_row_sparse();
    for (const at::Tensor& block : weight.blocks()) {
      if (lazy || !(state.decay > 0)) break;
      decaying.push_back(block);
      decay_factors.emplace_back(1 - rate * state.decay);
    }
    updates.push_back(
        {weight, gradient, state.slots, rate, iterations() + 1, lazy ? 1 - rate * state.decay : 1});
  }
  scale_blocks(decaying, decay_factors);
  {
    const ProfileSpan span(SpanKind::aten, "update");
    update_in_parts(updates);
  }
  for (size_t i = 0; i < step.states.size(); ++i) {
    Variable& variable = step.states[i]->variable;
    const ShardingPtr& stored = variable.value().sharding();
    if (updates[i].weight.sharding() != stored) {
      variable.assign(relayout_to(updates[i].weight, stored));
    }
  }
}

/// Runs update_variables(), which takes gradients in the variables' dtypes. Narrow ones are widened
/// for one of several calls, so that no more of them are wide at a time than the largest one.
void Optimizer::update_in_parts(const std::vector<VariableUpdate>& updates) const {
  const auto widened = [](VariableUpdate update) {
    update.gradient = ops::cast(update.gradient, update.weight.dtype());
    return update;
  };
  const auto wide_bytes = [](const VariableUpdate& update) {
    if (update.gradient.dtype() == update.weight.dtype()) return 0.0;
    return shard_bytes(update.weight.shape(), update.weight.dtype(), update.weight.layout());
  };
  double most = 0;
  for (const VariableUpdate& update : updates) most = std::max(most, wide_bytes(update));
  std::vector<VariableUpdate> part, stored;
  double bytes = 0;
  for (const VariableUpdate& update : updates) {
    if (!is_abstract() && !update.slots.empty() && StoredSlots::rests(update.slots[0])) {
      stored.push_back(update);
      continue;
    }
    if (bytes + wide_bytes(update) > most) {
      update_variables(std::exchange(part, {}));
      bytes = 0;
    }
    bytes += wide_bytes(update);
    part.push_back(widened(update));
  }
  if (!part.empty()) update_variables(part);
  if (stored.empty()) return;
  StoredSlots::update(stored,
                      [&](const VariableUpdate& update) { update_variables({widened(update)}); });
}

void Optimizer::add_blocks(const VariableUpdate& update, std::vector<UpdateArgs>& blocks) {
  const std::vector<BlockInfo>& infos = update.gradient.sharding()->blocks;
  for (size_t b = 0; b < infos.size(); ++b) {
    if (infos[b].empty) continue;
    const DeviceMemory::For memory(infos[b].devices.front());
    const at::Tensor& weight = update.weight.blocks()[b];
    const at::Tensor& gradient = update.gradient.stored_blocks()[b];
    UpdateArgs args{weight,
                    gradient.is_sparse() ? gradient : in_order_of(weight, gradient),
                    {},
                    update.learning_rate,
                    update.step};
    for (const Variable& slot : update.slots) args.slots.push_back(slot.value().blocks()[b]);
    blocks.push_back(std::move(args));
  }
}

void Optimizer::update_variables(const std::vector<VariableUpdate>& updates) const {
  std::vector<UpdateArgs> blocks;
  std::vector<RowUpdate> by_rows;
  for (const VariableUpdate& update : updates) {
    if (!update.gradient.is_row_sparse()) {
      add_blocks(update, blocks);
      continue;
    }
    std::vector<UpdateArgs> row_sparse;
    add_blocks(update, row_sparse);
    for (UpdateArgs& block : row_sparse) {
      RowUpdate rows(std::move(block), update.row_decay);
      if (rows.empty()) continue;
      blocks.push_back(rows.rows());
      by_rows.push_back(std::move(rows));
    }
  }
  update_all(blocks);
  for (const RowUpdate& rows : by_rows) rows.finish();
}

void Optimizer::update_all(const std::vector<UpdateArgs>& blocks) const {
  std::vector<at::Tensor> weights;
  for (const UpdateArgs& args : blocks) weights.push_back(args.weight);
  for_each_block(weights, [&](size_t b) {
    const ProfileSpan span(SpanKind::aten, "update");
    update(blocks[b]);
  });
}

void Optimizer::update(const UpdateArgs&) const {}

void Optimizer::constrain(const Step& step) const {
  for (State* state : step.states) {
    const ConstraintHandle& constraint = state->variable.spec().constraint;
    if (constraint) state->variable.assign((*constraint)(state->variable.value()));
  }
}

}  // namespace tessera
