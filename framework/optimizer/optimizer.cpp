#include <tessera/framework/optimizer/optimizer.hpp>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include <ATen/ATen.h>
#include <re2/re2.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/optimizer/internal/moving_averages.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(BaseOptions& o, const Visit& visit) {
  base_fields(o, visit);
}

namespace {

/// Initializes a slot with its variable's value at the time the slot is first read.
struct FirstValue : Initializer {
  explicit FirstValue(Variable of) : variable(std::move(of)) {}
  std::string class_name() const override { return "FirstValue"; }
  DTensor draw(const Shape&, at::ScalarType, Seed) const override { return variable.value(); }
  Variable variable;
};

/// Whether an expression of exclude_from_weight_decay() matches a variable's path or its last name.
bool excludes(const std::string& expression, const Variable& variable) {
  const std::string& path = variable.path();
  return re2::RE2::PartialMatch(path, expression) ||
         re2::RE2::PartialMatch(path.substr(path.rfind('/') + 1), expression);
}

}  // namespace

const Layout& Optimizer::update_layout(const Variable& variable) {
  const Placement& placement = variable.placement();
  return placement.slots ? *placement.slots : placement.layout;
}

Optimizer::Optimizer(const std::string& class_name, const LearningRate& learning_rate,
                     const BaseOptions& options)
    : class_name_(class_name),
      learning_rate_(learning_rate),
      options_(options),
      reducer_(std::make_shared<GradientReducer>()) {
  check_base_options(class_name, options);
  if (name().empty()) options_.name = snake_case(class_name);
  if (options.use_ema) averages_ = std::make_shared<MovingAverages>();
}

Json Optimizer::config() const {
  Json config = {{"name", name()}, {"learning_rate", learning_rate_.config()}};
  config.update(config_of(options_));
  // Keras does not know this key, so it is written only if set.
  if (!options_.lazy_rows) config.erase("lazy_rows");
  return config;
}

void Optimizer::set_learning_rate(const LearningRate& rate) {
  if (has_schedule() && !rate.is_schedule()) {
    throw StateError(class_name(), "a number cannot replace a learning-rate schedule", "a number",
                     "set another schedule, or create the optimizer with a number");
  }
  stop_tracing("a learning rate was set");
  learning_rate_ = rate;
}

int64_t Optimizer::iterations() const {
  return steps_ / options_.gradient_accumulation_steps.value_or(1);
}

std::vector<OptimizerHandle> Optimizer::inner() const { return {}; }

DTensor Optimizer::scale_loss(const DTensor& loss) const {
  return options_.loss_scale_factor ? ops::scale(loss, *options_.loss_scale_factor) : loss;
}

void Optimizer::set_loss_scale_of(Optimizer& inner, const std::optional<double>& factor) {
  inner.set_loss_scale_factor(factor);
}

void Optimizer::set_loss_scale_factor(const std::optional<double>& factor) {
  stop_tracing("a loss scale was set");
  GradientAccumulation(*this).reduce();
  BaseOptions changed = options_;
  changed.loss_scale_factor = factor;
  check_base_options(class_name(), changed);
  options_ = changed;
}

bool Optimizer::takes_rows() const {
  const bool whole = needs_full_variable() || strategy_ || options_.gradient_accumulation_steps;
  return !whole && (options_.lazy_rows || rows_are_exact());
}

std::vector<SlotSpec> Optimizer::slot_specs(const Variable&) const { return {}; }

std::optional<double> Optimizer::weight_decay_of(const Variable&) const {
  return options_.weight_decay;
}

void Optimizer::exclude_from_weight_decay(const WeightDecayExclusions& exclusions) {
  if (built()) {
    throw StateError(class_name(), "exclusions must be set before the optimizer is built",
                     str("an optimizer of ", order_.size(), " variables"),
                     "call exclude_from_weight_decay() before compile() or the first step");
  }
  for (const std::string& expression : exclusions.var_names) {
    const re2::RE2 compiled(expression, re2::RE2::Quiet);
    if (compiled.ok()) continue;
    throw ConfigError(str(class_name(), ", var_names"), "an RE2 expression",
                      str(in_quotes(expression), ": ", compiled.error()),
                      "put a backslash before special characters");
  }
  const std::vector<OptimizerHandle> wrapped = inner();
  for (const OptimizerHandle& each : wrapped) each->exclude_from_weight_decay(exclusions);
  if (wrapped.empty()) exclusions_ = exclusions;
  exclusions_checked_ = false;
}

double Optimizer::decay_of(const Variable& variable) const {
  const double decay = weight_decay_of(variable).value_or(0);
  for (const Variable& excluded : exclusions_.var_list) {
    if (excluded.is(variable)) return 0;
  }
  const bool excluded = std::any_of(exclusions_.var_names.begin(), exclusions_.var_names.end(),
                                    [&](const std::string& e) { return excludes(e, variable); });
  return excluded ? 0 : decay;
}

/// Returns expressions that match all excluded variables, also those excluded by themselves.
std::vector<std::string> Optimizer::excluded_names() const {
  std::vector<std::string> all = exclusions_.var_names;
  for (const Variable& variable : exclusions_.var_list) {
    all.push_back("^" + re2::RE2::QuoteMeta(variable.path()) + "$");
  }
  return all;
}

/// Warns once of each name that excludes none of these variables, the model's or those of the first
/// step.
void Optimizer::warn_of_unused_exclusions(const std::vector<Variable>& variables) {
  if (std::exchange(exclusions_checked_, true) || variables.empty()) return;
  for (const OptimizerHandle& each : inner()) each->warn_of_unused_exclusions(variables);
  std::set<std::string> parts;
  for (const Variable& variable : variables) {
    std::istringstream path(variable.path());
    for (std::string part; std::getline(path, part, '/');) parts.insert(part);
  }
  const std::vector<std::string> known(parts.begin(), parts.end());
  for (const std::string& expression : exclusions_.var_names) {
    const auto fits = [&](const Variable& variable) { return excludes(expression, variable); };
    if (std::any_of(variables.begin(), variables.end(), fits)) continue;
    warn_once(variables[0].layout().mesh(),
              str(class_name(), ", exclude_from_weight_decay(): no weight's path matches ",
                  in_quotes(expression), "; ", suggestion(expression, known)));
  }
}

std::vector<Variable> Optimizer::State::all() const {
  std::vector<Variable> list = slots;
  if (average.defined()) list.push_back(average);
  if (accumulator.defined()) list.push_back(accumulator);
  return list;
}

void Optimizer::build(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) build_state(variable);
}

std::vector<Variable> Optimizer::built_for() const {
  std::vector<Variable> list;
  for (uint64_t id : order_) {
    const State& state = states_.at(id);
    if (!state.is_part) list.push_back(state.variable);
  }
  for (const OptimizerHandle& each : inner()) {
    const std::vector<Variable> inner_variables = each->built_for();
    list.insert(list.end(), inner_variables.begin(), inner_variables.end());
  }
  return list;
}

void Optimizer::build_as(const Variable& part, const Variable& variable) {
  State& state = build_state(part);
  state.decay = decay_of(variable);
  state.is_part = true;
}

void Optimizer::set_update_strategy(std::shared_ptr<UpdateStrategy> strategy) {
  if (strategy && !inner().empty()) {
    throw ConfigError(class_name(), "an update strategy needs an optimizer without inner ones",
                      "a wrapping optimizer", "use the inner optimizer");
  }
  strategy_ = std::move(strategy);
}

Variable Optimizer::make_slot(const Variable& variable, const SlotSpec& spec) const {
  Shape shape = variable.shape();
  if (spec.without_axis) shape.erase(shape.begin() + *spec.without_axis);
  const InitializerHandle initializer =
      spec.starts_as_variable ? InitializerHandle(std::make_shared<FirstValue>(variable))
                              : Constant(spec.initial_value);
  const std::string path = str(name(), "/", variable.path(), "/", spec.name);
  VariableSpec slot_spec{path, shape, variable.dtype(), initializer};
  slot_spec.memory_use = MemoryUse::slots;
  if (shape == variable.shape()) slot_spec.memory_order = variable.spec().memory_order;
  Variable slot(std::move(slot_spec));
  slot.set_trainable(false);
  return slot;
}

Optimizer::State& Optimizer::build_state(const Variable& variable) {
  const auto [it, inserted] = states_.try_emplace(variable.id(), State{variable});
  State& state = it->second;
  if (inserted) {
    order_.push_back(variable.id());
    state.decay = decay_of(variable);
    state.specs = slot_specs(variable);
    for (const SlotSpec& spec : state.specs) state.slots.push_back(make_slot(variable, spec));
    if (averages_) {
      state.average = make_slot(variable, {"average"});
      averages_->add(variable, state.average);
    }
    if (options_.gradient_accumulation_steps) {
      state.accumulator = make_slot(variable, {"gradient_accumulator"});
    }
  }
  const Layout& layout = update_layout(variable);
  // The host's memory is where the slots of a mesh of CPUs are anyway.
  std::string rests_in = variable.placement().slots_in;
  if (rests_in == "host" && !on_gpus(layout.mesh())) rests_in.clear();
  for (size_t i = 0; i < state.slots.size(); ++i) {
    const std::optional<int64_t>& removed_axis = state.specs[i].without_axis;
    state.slots[i].place({.shape = state.slots[i].shape(),
                          .layout = removed_axis ? layout.remove({*removed_axis}) : layout,
                          .rests_in = rests_in});
  }
  if (state.average.defined()) state.average.place({variable.shape(), layout});
  if (state.accumulator.defined()) state.accumulator.place({variable.shape(), layout});
  // The first update initializes the averages; that of a variable added later is initialized here.
  if (inserted && averages_ && iterations() > 0) state.average.assign(variable.value());
  return state;
}

const Optimizer::State& Optimizer::state_of(const Variable& variable) const {
  const auto found = states_.find(variable.id());
  if (found != states_.end()) return found->second;
  throw StateError(variable.path(), "the optimizer must be built for this variable", "no slots",
                   "call build() or apply() with it first");
}

std::vector<Variable> Optimizer::variables_of(const Variable& variable) const {
  std::vector<Variable> all = state_of(variable).all();
  for (const OptimizerHandle& each : inner()) {
    if (!each->knows(variable)) continue;
    for (const Variable& owned : each->variables_of(variable)) all.push_back(owned);
  }
  return all;
}

std::vector<Variable> Optimizer::variables() const {
  std::vector<Variable> all;
  for (uint64_t id : order_) {
    for (const Variable& owned : states_.at(id).all()) all.push_back(owned);
  }
  for (const OptimizerHandle& each : inner()) {
    for (const Variable& owned : each->variables()) all.push_back(owned);
  }
  return all;
}

void Optimizer::finalize_variable_values(const std::vector<Variable>& variables) {
  const NoRecording no_tape;
  for (const OptimizerHandle& each : inner()) {
    std::vector<Variable> known;
    std::copy_if(variables.begin(), variables.end(), std::back_inserter(known),
                 [&](const Variable& variable) { return each->knows(variable); });
    each->finalize_variable_values(known);
  }
  // There are no averages before the first update.
  if (!averages_ || iterations() == 0) return;
  for (const Variable& variable : variables) state_of(variable);
  averages_->finalize(variables);
}

void Optimizer::check_step(const std::vector<DTensor>& gradients,
                           const std::vector<Variable>& variables) const {
  if (gradients.size() != variables.size()) {
    throw ConfigError(class_name(), "there must be one gradient for each variable",
                      str(gradients.size(), " gradients for ", variables.size(), " variables"),
                      "pass an undefined one for a variable without a gradient");
  }
  bool any = false;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    any = true;
    if (gradients[i].shape() == variables[i].shape()) continue;
    throw ShapeError(variables[i].path(),
                     "a gradient must have its variable's shape " + to_string(variables[i].shape()),
                     to_string(gradients[i].shape()), "pass gradients in the variables' order");
  }
  if (any) return;
  throw StateError(class_name(), "at least one variable must have a gradient", "none",
                   "check that the loss depends on the variables");
}

}  // namespace tessera
