#pragma once

#include <type_traits>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

/// Writes a layer's options as its config() has them; called with a key and a member.
struct PutOptions {
  Json& json;
  template <class T>
  void operator()(const char* key, const T& value) const {
    if constexpr (std::is_same_v<T, ActivationRef>) {
      json[key] = value.name();
    } else if constexpr (requires { value->class_name(); }) {
      json[key] = serialized(value);
    } else {
      json[key] = option_json(value);
    }
  }
};

/// Takes them from there; what is absent or null stays.
struct TakeOptions {
  JsonObject& config;
  template <class T>
  void operator()(const char* key, T& value) const {
    read_option(config, key, value);
  }
};

/// Takes the options that every layer has.
template <class Options>
void take_common(JsonObject& config, Options& options) {
  const LayerOptions common = take_layer_options(config);
  options.name = common.name;
  options.dtype = common.dtype;
  options.trainable = common.trainable;
}

}  // namespace tessera
