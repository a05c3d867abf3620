#pragma once

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

/// How optimizers are configured: fields(options, visit) in an optimizer's source names its own
/// options by Keras' keys, base_fields() those that every optimizer has. config() and what makes
/// the optimizer of a configuration come from them.
namespace tessera::detail {

/// An optimizer's config(): what every optimizer has, then its own options.
template <class Options>
Json optimizer_config(const Optimizer& optimizer, const Options& options) {
  Json json = optimizer.Optimizer::config();
  json.update(config_of(options));
  return json;
}

/// What makes an optimizer of its "config", for Registered; what is absent is as Made() has it.
template <class Made, class Options>
OptimizerHandle optimizer_of(JsonObject& config) {
  LearningRate rate = Made()->learning_rate();
  read_option(config, "learning_rate", rate);
  auto options = options_from<Options>(config);
  read_option(config, "name", options.name);
  base_fields(options, [&](const char* key, auto& value) { read_option(config, key, value); });
  return Made(rate, options);
}

}  // namespace tessera::detail
