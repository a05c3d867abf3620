#include <tessera/framework/io/internal/checkpoint_state.hpp>

#include <cmath>
#include <limits>
#include <span>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/layer_states.hpp>
#include <tessera/framework/optimizer/internal/gradient_accumulation.hpp>
#include <tessera/framework/training/callbacks/internal/python_repr.hpp>

namespace tessera::detail {
namespace {

/// Replaces non-finite numbers, which JSON lacks, by objects.
void encode_non_finite(Json& json) {
  if (json.is_number_float() && !std::isfinite(json.get<double>())) {
    json = {{"float", python_repr(json.get<double>())}};
  } else if (json.is_structured()) {
    for (Json& value : json) encode_non_finite(value);
  }
}

void decode_non_finite(Json& json) {
  if (json.is_object() && json.size() == 1 && json.contains("float")) {
    const Json name = json["float"];
    if (name == "nan") json = std::nan("");
    if (name == "inf") json = std::numeric_limits<double>::infinity();
    if (name == "-inf") json = -std::numeric_limits<double>::infinity();
  }
  if (!json.is_structured()) return;
  for (Json& value : json) decode_non_finite(value);
}

OptimizerState read_optimizer(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  OptimizerState state;
  state.class_name = object.take<std::string>("class_name");
  state.steps = object.take<int64_t>("steps");
  state.learning_rate = object.take_optional<double>("learning_rate");
  const double rate = state.learning_rate.value_or(0);
  if (state.steps < 0) json_fail(json, path.key("steps"), "a number of steps");
  if (!(rate >= 0)) json_fail(json, path.key("learning_rate"), "a rate of at least 0");
  state.own = object.take_or<Json>("own", nullptr);
  const auto inner = object.take_or<std::vector<Json>>("inner", {});
  for (size_t i = 0; i < inner.size(); ++i) {
    state.inner.push_back(read_optimizer(inner[i], path.key("inner").index(i)));
  }
  return state;
}

OptimizerState state_of(const Optimizer& optimizer) {
  OptimizerState state{optimizer.class_name(), optimizer.steps()};
  if (!optimizer.has_schedule()) state.learning_rate = optimizer.learning_rate();
  state.own = optimizer.state();
  for (const OptimizerHandle& each : optimizer.inner()) state.inner.push_back(state_of(*each));
  return state;
}

/// Converts an optimizer's state to JSON, without keys that are empty.
Json optimizer_json(const OptimizerState& state) {
  const auto& rate = state.learning_rate;
  Json json = {{"class_name", state.class_name},
               {"steps", state.steps},
               {"learning_rate", rate ? Json(*rate) : Json(nullptr)}};
  if (!state.own.is_null()) json["own"] = state.own;
  for (const OptimizerState& each : state.inner) json["inner"].push_back(optimizer_json(each));
  return json;
}

FitPosition read_position(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  // Older checkpoints have neither pass nor batch.
  const FitPosition position{object.take<int64_t>("epoch"), object.take<int64_t>("step"),
                             object.take_optional<int64_t>("pass"),
                             object.take_optional<int64_t>("batch")};
  if (position.epoch < 0 || position.step < 0 || position.pass.value_or(0) < 0) {
    json_fail(json, path, "numbers of at least 0");
  }
  if (position.batch && *position.batch < position.step) {
    json_fail(json, path, "a batch that is not before the step");
  }
  return position;
}

Json position_json(const FitPosition& position) {
  Json json = {{"epoch", position.epoch}, {"step", position.step}};
  if (position.pass) json["pass"] = *position.pass;
  if (position.batch) json["batch"] = *position.batch;
  return json;
}

CheckpointState read_state(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  CheckpointState state;
  state.seed = object.take<int64_t>("seed");
  state.position = read_position(object.take<Json>("position"), path.key("position"));
  const Json history = object.take<Json>("history");
  if (!history.is_null()) state.history = History::from_json(history, path.key("history"));
  state.metrics = object.take<Json>("metrics");
  const auto optimizers = object.take<std::vector<Json>>("optimizers");
  for (size_t i = 0; i < optimizers.size(); ++i) {
    state.optimizers.push_back(read_optimizer(optimizers[i], path.key("optimizers").index(i)));
  }
  state.callbacks = object.take<Json>("callbacks");
  if (!state.callbacks.is_object()) json_fail(state.callbacks, path.key("callbacks"), "an object");
  // Absent unless gradients are still to be reduced.
  const Json partial_sums = object.take_or("partial_sums", Json::object());
  if (!partial_sums.is_object()) json_fail(partial_sums, path.key("partial_sums"), "an object");
  for (const auto& [name, axes] : partial_sums.items()) {
    json_get(axes, path.key("partial_sums").key(name), state.partial_sums[name]);
  }
  state.extra = object.take<Json>("extra");
  state.about = object.take<Json>("about");
  return state;
}

}  // namespace

void for_each_tensor(const CheckpointParts& parts, CheckpointState& state,
                     const std::function<void(const std::string&, const DTensor&)>& visit) {
  const AccumulatedGradients accumulated(optimizers_of(parts));
  std::map<uint64_t, DTensor> partial_sums;
  for (const UnreducedSum& sum : accumulated.unreduced()) {
    partial_sums[sum.accumulator.id()] = sum.partial_sums;
  }
  const auto visit_sums = [&](const std::string& item, const DTensor& sums) {
    const std::string name = partial_sums_name(item);
    visit(name, sums);
    for (const AxisSpec& axis : sums.layout().spec()) {
      state.partial_sums[name].push_back(axis.dims());
    }
  };
  for (const CheckpointItem& item : items_of(parts)) {
    visit(item.name, item.variable.value());
    const auto found = partial_sums.find(item.variable.id());
    if (found != partial_sums.end()) visit_sums(item.name, found->second);
  }
  if (!state.metrics.is_null()) {
    const auto all = parts.totals.is_null() ? parts.model->metric_sums() : parts.sums;
    for (const auto& [name, sums] : all) visit_sums(metric_name(name), sums);
  }
  if (parts.model) {
    for (const auto& [name, value] : layer_states(*parts.model)) visit(name, value.value());
  }
  for (const auto& [key, callback] : named_callbacks(parts)) {
    for (const auto& [path, value] : callback->tensors()) {
      visit("callbacks/" + key + "/" + path, value);
    }
  }
}

std::vector<double> read_step_losses(const CheckpointReader& reader) {
  const CheckpointTensor& tensor = reader.at(step_losses_name);
  if (tensor.dtype != "F64" || tensor.shape.size() != 1) {
    throw FileError(
        reader.folder(), str("tensor ", in_quotes(step_losses_name), " is float64 of rank 1"),
        tensor.dtype + to_string(tensor.shape), "restore a checkpoint that save() wrote");
  }
  std::vector<double> losses(static_cast<size_t>(tensor.shape[0]));
  reader.read(step_losses_name, {0}, tensor.shape, std::as_writable_bytes(std::span(losses)));
  return losses;
}

CheckpointState current_state(const CheckpointParts& parts) {
  CheckpointState state;
  state.seed = global_seed();
  state.extra = parts.extra;
  if (parts.model && parts.model->compiled()) {
    state.position = parts.model->fit_position();
    state.history = parts.model->history();
    // Not needed between epochs.
    if (state.position.step > 0) {
      state.metrics = parts.totals.is_null() ? parts.model->metric_totals() : parts.totals;
    }
  }
  for (const OptimizerHandle& optimizer : optimizers_of(parts)) {
    state.optimizers.push_back(state_of(*optimizer));
  }
  for (const auto& [key, callback] : named_callbacks(parts)) {
    const Json callback_state = callback->state();
    if (!callback_state.is_null() || !callback->tensors().empty()) {
      state.callbacks[key] = callback_state;
    }
  }
  return state;
}

void restore_state(Optimizer& optimizer, const OptimizerState& state) {
  const std::vector<OptimizerHandle> inner = optimizer.inner();
  for (size_t i = 0; i < inner.size(); ++i) restore_state(*inner[i], state.inner[i]);
  optimizer.set_steps(state.steps);
  if (state.learning_rate && !optimizer.has_schedule()) {
    optimizer.set_learning_rate(*state.learning_rate);
  }
  if (!state.own.is_null()) optimizer.restore(state.own);
}

Json to_json(const CheckpointState& state) {
  Json optimizers = Json::array();
  for (const OptimizerState& optimizer : state.optimizers) {
    optimizers.push_back(optimizer_json(optimizer));
  }
  Json json = {{"seed", state.seed},
               {"position", position_json(state.position)},
               {"history", state.history ? state.history->as_json() : Json(nullptr)},
               {"metrics", state.metrics},
               {"optimizers", optimizers},
               {"callbacks", state.callbacks},
               {"extra", state.extra},
               {"about", state.about}};
  if (!state.partial_sums.empty()) json["partial_sums"] = state.partial_sums;
  encode_non_finite(json);
  return json;
}

CheckpointState state_from_json(const Json& json, const std::string& folder) {
  try {
    Json state = json;
    decode_non_finite(state);
    return read_state(state, JsonPath(folder + ": state"));
  } catch (const ConfigError& error) {
    throw FileError(error.what());
  }
}

}  // namespace tessera::detail
