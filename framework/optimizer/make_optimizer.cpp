#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Key of a serialized optimizer beside its "config", where Keras skips what it does not know.
constexpr const char* exclusions_key = "exclude_from_weight_decay";

/// Returns both tables merged, with class names in lower case.
ConfigFactories<OptimizerHandle> factories() {
  ConfigFactories<OptimizerHandle> all;
  for (const auto* table : {&optimizer_factories(), &wrapping_optimizer_factories()}) {
    for (const auto& [name, make] : *table) all[lower_case(name)] = make;
  }
  return all;
}

}  // namespace

ConfigFactories<OptimizerHandle>& detail::optimizer_factories() {
  static ConfigFactories<OptimizerHandle> factories;
  return factories;
}

ConfigFactories<OptimizerHandle>& detail::wrapping_optimizer_factories() {
  static ConfigFactories<OptimizerHandle> factories;
  return factories;
}

LossScaler& detail::loss_scaler() {
  static LossScaler scaler = nullptr;
  return scaler;
}

OptimizerHandle detail::make_optimizer(const std::string& name) {
  return make_default("optimizer", factories(), name);
}

OptimizerHandle optimizer_from_config(const Json& json, const std::string& where) {
  const JsonPath path(where);
  Json serialized = json;
  WeightDecayExclusions exclusions;
  if (serialized.is_object() && serialized.contains(exclusions_key)) {
    exclusions.var_names =
        json_as<std::vector<std::string>>(serialized[exclusions_key], path.key(exclusions_key));
    serialized.erase(exclusions_key);
  }
  auto [name, config] = read_serialized(serialized, path);
  OptimizerHandle optimizer =
      made_from("optimizer", factories(), lower_case(name), std::move(config), path);
  if (!exclusions.var_names.empty()) optimizer->exclude_from_weight_decay(exclusions);
  return optimizer;
}

Json optimizer_to_config(const OptimizerHandle& optimizer) {
  Json serialized = {{"module", "keras.optimizers"},
                     {"class_name", optimizer->class_name()},
                     {"config", optimizer->config()},
                     {"registered_name", nullptr}};
  const std::vector<std::string> excluded = optimizer->excluded_names();
  if (!excluded.empty()) serialized[exclusions_key] = excluded;
  return serialized;
}

std::vector<std::string> detail::optimizer_names() { return names_in(optimizer_factories()); }

OptimizerHandle::OptimizerHandle(const char* name) : OptimizerHandle(make_optimizer(name)) {}

}  // namespace tessera
