#include <tessera/framework/nn/from_config.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <algorithm>

namespace tessera {
namespace {

const ConfigFactories<OptimizerRef>& factories() {
  static const ConfigFactories<OptimizerRef> all = {
      {"adadelta", Adadelta::from_config}, {"adagrad", Adagrad::from_config},
      {"adam", Adam::from_config},         {"adamax", Adamax::from_config},
      {"adamw", AdamW::from_config},       {"nadam", Nadam::from_config},
      {"rmsprop", RMSprop::from_config},   {"sgd", SGD::from_config},
  };
  return all;
}

}  // namespace

OptimizerRef make_optimizer(const std::string& name) {
  return make_default("optimizer", factories(), name);
}

OptimizerRef optimizer_from_config(const Json& json, const std::string& where) {
  const JsonPath path(where);
  auto [name, config] = read_serialized(json, path);
  return made_from("optimizer", factories(), lower_case(name), std::move(config), path);
}

Json optimizer_to_config(const OptimizerRef& optimizer) {
  return {{"module", "keras.optimizers"},
          {"class_name", optimizer->class_name()},
          {"config", optimizer->config()},
          {"registered_name", nullptr}};
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& factory : factories()) {
    names.push_back(make_optimizer(factory.first)->class_name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

OptimizerRef::OptimizerRef(const char* name) : OptimizerRef(make_optimizer(name)) {}

}  // namespace tessera
