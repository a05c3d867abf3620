#include <memory>
#include <span>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/optimizer/internal/for_each_block.hpp>
#include <tessera/framework/nn/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/nn/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/nn/optimizer/internal/moving_averages.hpp>
#include <tessera/framework/nn/optimizer/internal/update_strategy.hpp>
#include <tessera/framework/nn/optimizer/optimizer.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// A variable's blocks, to be changed in place.
const Blocks& writable_blocks(Variable& variable) {
  const Blocks& blocks = variable.value().blocks();
  return blocks.empty() ? blocks : variable.writable();
}

/// A variable's value in other blocks, in memory of their own.
DTensor copy_in_layout(const Variable& variable, const ShardingPtr& form) {
  const DTensor pieces = relayout_to(variable.value(), form);
  Blocks copies;
  for (const at::Tensor& block : pieces.blocks()) copies.push_back(block.contiguous().clone());
  return DTensor(form, std::move(copies));
}

/// A block that is changed in place, and one that is read.
struct Pair {
  at::Tensor to, from;
};

void add_pairs(std::vector<Pair>& pairs, const Blocks& to, const Blocks& from) {
  for (size_t b = 0; b < to.size(); ++b) pairs.push_back({to[b], from[b]});
}

/// Calls run(pair) for each, small ones in parallel.
template <class Run>
void each_pair(const std::vector<Pair>& pairs, const Run& run) {
  std::vector<at::Tensor> blocks;
  for (const Pair& pair : pairs) blocks.push_back(pair.to);
  for_each_block(blocks, [&](size_t i) {
    const ProfileSpan span(SpanKind::aten, "accumulate");
    run(pairs[i]);
  });
}

}  // namespace

/// The variables that have a gradient, and these: each in the blocks of its variable's update.
struct Optimizer::Step {
  std::vector<State*> states;
  std::vector<DTensor> gradients;
};

void Optimizer::apply(const std::vector<DTensor>& gradients,
                      const std::vector<Variable>& variables) {
  const ProfileSpan span(SpanKind::optimizer, "apply");
  stop_tracing("Optimizer::apply() was called outside of minimize()");
  const NoRecording untaped;
  const c10::InferenceMode inference;
  check_step(gradients, variables);
  build(variables);
  const Step step = reduced(gradients, variables);
  std::vector<Variable> updated;
  for (const State* state : step.states) updated.push_back(state->variable);
  apply_reduced(*this, step.gradients, updated);
}

void Optimizer::apply_reduced(Optimizer& inner, const std::vector<DTensor>& gradients,
                              const std::vector<Variable>& variables) {
  inner.take_gradients(gradients, variables);
  if (!is_abstract()) ++inner.steps_;
}

void Optimizer::take_gradients(const std::vector<DTensor>& gradients,
                               const std::vector<Variable>& variables) {
  Step step{{}, gradients};
  for (const Variable& variable : variables) step.states.push_back(&states_.at(variable.id()));
  if (accumulate(step)) {
    if (clips(options_)) step.gradients = clip_gradients(step.gradients, options_);
    if (strategy_) {
      hand_over(step);
    } else {
      update_weights(step);
    }
    reset_accumulators();
  }
  if (!strategy_) finish(step);
}

/// One update by gradients that an UpdateStrategy was given.
void Optimizer::apply_ready(const std::vector<DTensor>& gradients,
                            const std::vector<Variable>& variables) {
  const NoRecording untaped;
  const c10::InferenceMode inference;
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

/// Every ema_overwrite_frequency iterations the weights become their means.
void Optimizer::update_averages() const {
  averages_->update(iterations() == 0 ? 0 : options_.ema_momentum);
  const auto every = options_.ema_overwrite_frequency;
  if (every && (iterations() + 1) % *every == 0) averages_->overwrite();
}

void Optimizer::hand_over(const Step& step) const {
  if (is_abstract()) return;
  std::vector<Variable> variables;
  for (const State* state : step.states) variables.push_back(state->variable);
  strategy_->update(variables, step.gradients);
}

/// The blocks that a variable is updated in: those of what is kept for it, else its own.
ShardingPtr Optimizer::update_form(const State& state) const {
  const Variable& variable = state.variable;
  for (const Variable& kept : variables_of(variable)) {
    if (kept.shape() == variable.shape()) return kept.value().sharding();
  }
  if (update_layout(variable) == variable.layout()) return variable.value().sharding();
  return intern(variable.shape(), variable.dtype(), abstract_layout(update_layout(variable)));
}

void Optimizer::reduce_early(const Variable& variable, const DTensor& gradient) {
  if (!GradientReducer::concerns(gradient)) return;
  reducer_->ready(variable.path(), gradient, update_form(states_.at(variable.id())));
}

std::function<void(size_t, const DTensor&)> Optimizer::reduce_when_ready(
    const std::vector<Variable>& variables) {
  struct Ready {
    std::vector<Variable> variables;
    bool built = false;
  };
  // A recorded step keeps it.
  const auto ready = std::make_shared<Ready>(Ready{variables});
  return [this, ready](size_t i, const DTensor& gradient) {
    if (!GradientReducer::concerns(gradient)) return;
    traced(std::span(&gradient, 1), [this, ready, i](std::span<const DTensor> in) {
      const NoRecording untaped;
      const c10::InferenceMode inference;
      if (!std::exchange(ready->built, true)) build(ready->variables);
      reduce_early(ready->variables[i], in[0]);
    });
  };
}

Optimizer::Step Optimizer::reduced(const std::vector<DTensor>& gradients,
                                   const std::vector<Variable>& variables) {
  const auto over = c10::make_scope_exit([this] { reducer_->reset(); });
  // The order of a backward pass, in which the ones that are not there yet would have come.
  for (size_t i = variables.size(); i-- > 0;) {
    if (gradients[i].defined()) reduce_early(variables[i], gradients[i]);
  }
  reducer_->finish();
  Step step = step_of(gradients, variables);
  if (AbstractNotes* notes = abstract_notes()) {
    for (size_t i = 0; i < variables.size(); ++i) {
      if (!gradients[i].defined()) continue;
      notes->gradients.push_back({variables[i].path(), gradients[i].sharding()});
    }
  }
  return step;
}

/// The gradients where their variables are updated. Collective.
Optimizer::Step Optimizer::step_of(const std::vector<DTensor>& gradients,
                                   const std::vector<Variable>& variables) {
  Step step;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].defined()) continue;
    State& state = states_.at(variables[i].id());
    const ShardingPtr form = update_form(state);
    const CommLabel place(variables[i].path());
    reducer_->log(gradients[i]);
    const DTensor moved = relayout_to(ops::cast(gradients[i], variables[i].dtype()), form);
    step.states.push_back(&state);
    step.gradients.push_back(moved);
  }
  return step;
}

/// Divides by the loss scale and averages over the accumulated steps. False before the last.
bool Optimizer::accumulate(Step& step) {
  const double factor = 1 / options_.loss_scale_factor.value_or(1);
  const size_t count = step.gradients.size();
  if (!options_.gradient_accumulation_steps) {
    if (factor != 1) step.gradients = scaled(step.gradients, std::vector<double>(count, factor));
    return true;
  }
  std::vector<Pair> pairs;
  for (size_t i = 0; i < count; ++i) {
    add_pairs(pairs, writable_blocks(step.states[i]->accumulator), step.gradients[i].blocks());
  }
  each_pair(pairs, [&](const Pair& pair) { pair.to.add_(pair.from, factor); });
  const int64_t steps = *options_.gradient_accumulation_steps;
  // A plan is of a step that updates.
  if (!is_abstract() && (steps_ + 1) % steps != 0) return false;
  for (size_t i = 0; i < count; ++i) step.gradients[i] = step.states[i]->accumulator.value();
  step.gradients =
      scaled(step.gradients, std::vector<double>(count, 1 / static_cast<double>(steps)));
  return true;
}

void Optimizer::update_weights(const Step& step) {
  const double rate = learning_rate();
  std::vector<VariableUpdate> updates;
  for (size_t i = 0; i < step.states.size(); ++i) {
    State& state = *step.states[i];
    const DTensor& gradient = step.gradients[i];
    // A slot may begin as the variable that has not changed yet.
    for (Variable& slot : state.slots) writable_blocks(slot);
    const bool cut = gradient.sharding() != state.variable.value().sharding();
    if (!cut) writable_blocks(state.variable);
    const DTensor weight =
        cut ? copy_in_layout(state.variable, gradient.sharding()) : state.variable.value();
    if (state.decay > 0) {
      for (const at::Tensor& block : weight.blocks()) block.mul_(1 - rate * state.decay);
    }
    updates.push_back({weight, gradient, state.slots, rate, iterations() + 1});
  }
  {
    const ProfileSpan span(SpanKind::aten, "update");
    update_variables(updates);
  }
  for (size_t i = 0; i < step.states.size(); ++i) {
    Variable& variable = step.states[i]->variable;
    const ShardingPtr& form = variable.value().sharding();
    if (updates[i].weight.sharding() != form) {
      variable.assign(relayout_to(updates[i].weight, form));
    }
  }
}

void Optimizer::add_blocks(const VariableUpdate& update, std::vector<UpdateArgs>& blocks) {
  const std::vector<BlockInfo>& infos = update.gradient.sharding()->blocks;
  for (size_t b = 0; b < infos.size(); ++b) {
    if (infos[b].empty) continue;
    UpdateArgs args{update.weight.blocks()[b],
                    update.gradient.blocks()[b].contiguous(),
                    {},
                    update.learning_rate,
                    update.step};
    for (const Variable& slot : update.slots) args.slots.push_back(slot.value().blocks()[b]);
    blocks.push_back(std::move(args));
  }
}

void Optimizer::update_variables(const std::vector<VariableUpdate>& updates) const {
  std::vector<UpdateArgs> blocks;
  for (const VariableUpdate& update : updates) add_blocks(update, blocks);
  update_all(blocks);
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

void Optimizer::reset_accumulators() {
  if (!options_.gradient_accumulation_steps) return;
  for (uint64_t id : order_) {
    for (const at::Tensor& block : writable_blocks(states_.at(id).accumulator)) block.zero_();
  }
}

void Optimizer::constrain(const Step& step) const {
  for (State* state : step.states) {
    const ConstraintHandle& constraint = state->variable.spec().constraint;
    if (constraint) state->variable.assign((*constraint)(state->variable.value()));
  }
}

}  // namespace tessera
