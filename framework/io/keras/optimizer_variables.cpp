#include <tessera/framework/io/keras/optimizer_variables.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/io/internal/shards_to_save.hpp>
#include <tessera/framework/io/keras/legacy_slots.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {
namespace {

/// Limit up to which float64 represents every integer.
constexpr double max_exact_integer = 9007199254740992;

OptimizerHandle optimizer_in(const Layer& layer) {
  const auto* model = dynamic_cast<const Model*>(&layer);
  return model && model->compiled() ? model->optimizer() : OptimizerHandle();
}

/// Returns whether the optimizer has done a step: before the first one Keras has no variables but
/// numbers.
bool has_begun(const Optimizer& optimizer) {
  const std::vector<OptimizerHandle> inner = optimizer.inner();
  return optimizer.steps() > 0 ||
         std::any_of(inner.begin(), inner.end(),
                     [](const OptimizerHandle& each) { return has_begun(*each); });
}

/// Returns a number that Keras stores but that is unused here.
KerasValue fixed_number(const std::string& what, at::ScalarType dtype, double number) {
  return {
      .what = what, .dtype = dtype, .number = [=] { return number; }, .set_number = [](double) {}};
}

KerasValue steps_number(const OptimizerHandle& optimizer) {
  return {.what = optimizer->name() + "/iteration",
          .dtype = at::kInt,
          .number = [=] { return static_cast<double>(optimizer->steps()); },
          .set_number = [=](double steps) { optimizer->set_steps(static_cast<int64_t>(steps)); },
          .max_number = max_exact_integer};
}

/// Returns the learning rate. A stored rate that is equal in float32 keeps the float64 value set by
/// the program.
KerasValue rate_number(const OptimizerHandle& optimizer) {
  const auto set = [=](double rate) {
    const double now = optimizer->learning_rate();
    if (static_cast<float>(rate) != static_cast<float>(now)) optimizer->set_learning_rate(rate);
  };
  return {.what = optimizer->name() + "/learning_rate",
          .number = [=] { return optimizer->learning_rate(); },
          .set_number = set};
}

/// Returns a number of Optimizer::state().
KerasValue state_number(const OptimizerHandle& optimizer, const std::string& key) {
  return {.what = str(optimizer->name(), "/", key),
          .number = [=] { return optimizer->state().at(key).get<double>(); },
          .set_number =
              [=](double number) {
                Json state = optimizer->state();
                const bool is_integer = state.at(key).is_number_integer();
                state[key] = is_integer ? Json(static_cast<int64_t>(number)) : Json(number);
                optimizer->restore(state);
              }};
}

/// Returns Nadam's product of the momenta of all updates so far.
double momenta_product(const Optimizer& nadam) {
  const auto beta_1 = nadam.config().at("beta_1").get<double>();
  double product = 1;
  for (int64_t t = 1; t <= nadam.iterations() && product > 0; ++t) {
    product *= beta_1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(t)));
  }
  return product;
}

/// Returns in which of its passes over the variables Keras creates a slot.
int64_t pass_of(const std::string& class_name, const std::string& name) {
  if (name == "average") return 0;
  if (name == "gradient_accumulator") return 1;
  const bool is_rmsprop = class_name == "RMSprop";
  if (is_rmsprop && name == "average_gradient") return 4;
  if ((is_rmsprop && name == "momentum") || name == "velocity_hat") return 3;
  return 2;
}

/// Adds the slots that an optimizer without inner optimizers keeps of the variables that it was
/// built for.
void add_slot_values(const OptimizerHandle& optimizer, const std::vector<Variable>& variables,
                     std::vector<KerasValue>& values) {
  const std::string& kind = optimizer->class_name();
  std::map<std::string, std::vector<Variable>> slots_of;
  for (const Variable& slot : optimizer->variables()) {
    slots_of[slot.path().substr(0, slot.path().rfind('/'))].push_back(slot);
  }
  std::map<int64_t, std::vector<KerasValue>> passes;
  const Variable* first = nullptr;
  for (const Variable& variable : variables) {
    const auto it = slots_of.find(str(optimizer->name(), "/", variable.path()));
    if (it == slots_of.end()) continue;
    if (!first) first = &variable;
    // For a vector, Adafactor has two numbers in place of the row and column means.
    if (kind == "Adafactor" && variable.shape().size() < 2) {
      std::vector<KerasValue>& pass = passes[pass_of(kind, "r")];
      pass.insert(pass.end(), 2, fixed_number(variable.path(), at::kInt, 0));
    }
    for (const Variable& slot : it->second) {
      const std::string& path = slot.path();
      passes[pass_of(kind, path.substr(path.rfind('/') + 1))].push_back(
          {.what = path, .variable = slot});
    }
  }
  for (auto& [pass, pass_values] : passes) {
    std::move(pass_values.begin(), pass_values.end(), std::back_inserter(values));
  }
  if (first && kind == "Nadam") {
    values.push_back(fixed_number(optimizer->name() + "/u_product", first->dtype(),
                                  momenta_product(*optimizer)));
  }
}

/// Adds everything that Keras stores of an optimizer and its inner optimizers, in Keras' order;
/// without slots, what it stores before the first step.
void add_values(const OptimizerHandle& optimizer, const std::vector<Variable>& variables,
                bool with_slots, std::vector<KerasValue>& values) {
  const std::vector<OptimizerHandle> inner = optimizer->inner();
  values.push_back(steps_number(optimizer));
  if (!inner.empty()) {
    // In Keras it has a learning rate, which it does not use.
    values.push_back(fixed_number(optimizer->name() + "/learning_rate", at::kFloat, 0));
  } else if (!optimizer->has_schedule()) {
    values.push_back(rate_number(optimizer));
  }
  if (with_slots && optimizer->class_name() == "LossScaleOptimizer") {
    values.push_back(state_number(optimizer, "step_counter"));
    values.back().dtype = at::kInt;
    values.back().max_number = max_exact_integer;
    values.push_back(state_number(optimizer, "dynamic_scale"));
    values.back().min_number = std::numeric_limits<float>::denorm_min();
  }
  if (with_slots && inner.empty()) add_slot_values(optimizer, variables, values);
  for (const OptimizerHandle& each : inner) add_values(each, variables, with_slots, values);
}

/// Adds the group of an optimizer and those of its inner optimizers, whose variables it contains
/// too.
void add_groups(const std::string& path, const OptimizerHandle& optimizer,
                const std::vector<Variable>& variables, bool with_slots,
                std::vector<OptimizerGroup>& groups) {
  OptimizerGroup group{path, optimizer->name(), {}};
  add_values(optimizer, variables, with_slots, group.values);
  groups.push_back(std::move(group));
  const std::vector<OptimizerHandle> inner = optimizer->inner();
  const bool several = optimizer->class_name() == "MultiOptimizer";
  std::map<std::string, int64_t> counts;
  for (const OptimizerHandle& each : inner) {
    const std::string base =
        several ? "optimizers/" + snake_case(each->class_name()) : "inner_optimizer";
    const int64_t number = counts[base]++;
    const std::string below = str(path, "/", base) + (number == 0 ? "" : str("_", number));
    add_groups(below, each, variables, with_slots, groups);
  }
}

/// Returns the weights that may have been trained, whatever was frozen since.
std::vector<Variable> trainable_as_created(const Layer& model) {
  std::vector<Variable> weights = model.weights();
  std::erase_if(weights, [](const Variable& weight) { return !weight.spec().trainable; });
  return weights;
}

/// Matches what Keras up to 2.10 stored of an optimizer; nothing if the slots do not fit.
std::optional<std::vector<KerasMatch>> match_legacy_optimizer(
    const OptimizerHandle& optimizer, const std::vector<Variable>& trainable,
    const std::vector<KerasData>& data) {
  if (!optimizer->inner().empty()) return std::nullopt;
  std::vector<std::vector<Variable>> slots;
  for (const Variable& weight : trainable) slots.push_back(optimizer->variables_of(weight));
  return match_legacy_slots(data, optimizer->class_name(), steps_number(optimizer), slots);
}

}  // namespace

std::vector<KerasMatch> match_optimizer(const Layer& model, const KerasStore& store) {
  const OptimizerHandle optimizer = optimizer_in(model);
  const std::vector<KerasData> data = store.variables("/optimizer");
  if (!optimizer || data.empty()) return {};
  const std::vector<Variable> trainable = model.trainable_weights();
  const std::vector<Variable> created = trainable_as_created(model);
  optimizer->build(trainable);
  const bool begun = has_begun(*optimizer);
  std::vector<KerasValue> values, numbers;
  add_values(optimizer, created, true, values);
  add_values(optimizer, created, false, numbers);
  if (!begun && data.size() == numbers.size()) values = numbers;
  const bool legacy = store.is_legacy() && has_legacy_slots(data);
  if (!legacy && data.size() > values.size() && created.size() > trainable.size()) {
    // The file may have slots of weights that were frozen after training.
    optimizer->build(created);
    values.clear();
    add_values(optimizer, created, true, values);
  }
  const auto keep_values = [&](const std::string& why) {
    warn_once(mesh_of(trainable),
              str(store.path(), ": the variables of the optimizer ", in_quotes(optimizer->name()),
                  " keep their ", begun ? "values: " : "initial values: ", why));
    return std::vector<KerasMatch>();
  };
  if (legacy) {
    const auto matches = match_legacy_optimizer(optimizer, trainable, data);
    return matches ? *matches : keep_values("the file's slots do not fit");
  }
  if (data.size() != values.size()) {
    return keep_values(str("it has ", values.size(), ", the file ", data.size()));
  }
  std::vector<KerasMatch> matches;
  for (size_t i = 0; i < data.size(); ++i) {
    matches.push_back({values[i], data[i]});
    const std::string received = describe_mismatch(matches.back());
    if (received.empty()) continue;
    return keep_values(str(in_quotes(values[i].what), " has shape ", to_string(values[i].shape()),
                           ", the file ", received));
  }
  return matches;
}

std::vector<OptimizerGroup> optimizer_groups(const Layer& model) {
  const OptimizerHandle optimizer = optimizer_in(model);
  if (!optimizer) return {};
  optimizer->build(model.trainable_weights());
  // Its copies of accumulators stay in the groups.
  const AccumulatedGradients accumulated({optimizer});
  std::vector<OptimizerGroup> groups;
  add_groups("/optimizer", optimizer, trainable_as_created(model), has_begun(*optimizer), groups);
  return groups;
}

}  // namespace tessera::detail
