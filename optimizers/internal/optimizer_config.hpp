#pragma once

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

/// Conversion of optimizers to Keras configurations and back. fields(options, visit) in an
/// optimizer's source lists its own options by Keras' keys, base_fields() those that every
/// optimizer has; config() and its inverse are derived from them.
namespace tessera::detail {

/// Returns an optimizer's config(): the options that every optimizer has, then its own.
template <class Options>
Json optimizer_config(const Optimizer& optimizer, const Options& options) {
  Json json = optimizer.Optimizer::config();
  json.update(config_of(options));
  return json;
}

/// Creates an optimizer from its "config", with the defaults of OptimizerClass() for absent keys; a
/// factory for Registered.
template <class OptimizerClass, class Options>
OptimizerHandle optimizer_of(JsonObject& config) {
  LearningRate rate = OptimizerClass()->learning_rate();
  read_option(config, "learning_rate", rate);
  auto options = options_from<Options>(config);
  read_option(config, "name", options.name);
  base_fields(options, [&](const char* key, auto& value) { read_option(config, key, value); });
  return OptimizerClass(rate, options);
}

}  // namespace tessera::detail
