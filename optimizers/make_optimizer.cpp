#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/optimizers/optimizers.hpp>

namespace tessera {
namespace {

/// By Keras' class names: those that are made without another one.
const ConfigFactories<OptimizerHandle>& by_class() {
  static const ConfigFactories<OptimizerHandle> all = {
      {"Adadelta", Adadelta::from_config},
      {"Adafactor", Adafactor::from_config},
      {"Adagrad", Adagrad::from_config},
      {"Adam", Adam::from_config},
      {"AdamW", AdamW::from_config},
      {"Adamax", Adamax::from_config},
      {"Ftrl", Ftrl::from_config},
      {"Lamb", Lamb::from_config},
      {"Lion", Lion::from_config},
      {"Muon", Muon::from_config},
      {"Nadam", Nadam::from_config},
      {"RMSprop", RMSprop::from_config},
      {"SGD", SGD::from_config},
      {"ScheduleFreeAdamW", ScheduleFreeAdamW::from_config},
  };
  return all;
}

const ConfigFactories<OptimizerHandle>& factories() {
  static const ConfigFactories<OptimizerHandle> all = [] {
    ConfigFactories<OptimizerHandle> by_name;
    for (const auto& [name, make] : by_class()) by_name[lower_case(name)] = make;
    by_name["lossscaleoptimizer"] = LossScaleOptimizer::from_config;
    by_name["multioptimizer"] = MultiOptimizer::from_config;
    return by_name;
  }();
  return all;
}

}  // namespace

OptimizerHandle make_optimizer(const std::string& name) {
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

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& factory : by_class()) names.push_back(factory.first);
  return names;
}

OptimizerHandle::OptimizerHandle(const char* name) : OptimizerHandle(make_optimizer(name)) {}

}  // namespace tessera
