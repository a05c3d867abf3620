#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera {

using namespace detail;

namespace {

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
  auto [name, config] = read_serialized(json, path);
  return made_from("optimizer", factories(), lower_case(name), std::move(config), path);
}

Json optimizer_to_config(const OptimizerHandle& optimizer) {
  return {{"module", "keras.optimizers"},
          {"class_name", optimizer->class_name()},
          {"config", optimizer->config()},
          {"registered_name", nullptr}};
}

std::vector<std::string> detail::optimizer_names() { return names_in(optimizer_factories()); }

OptimizerHandle::OptimizerHandle(const char* name) : OptimizerHandle(make_optimizer(name)) {}

}  // namespace tessera
