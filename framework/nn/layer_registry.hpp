#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

namespace detail {

/// What makes layers from their "config", by class name.
using LayerFactories = ConfigFactories<LayerHandle>;

}  // namespace detail

/// Makes a layer class known to layer_from_config (keras.saving.register_keras_serializable):
///
///     register_layer("Scale", [](JsonObject& config) {
///       const LayerOptions options = take_layer_options(config);
///       return make_layer<ScaleLayer>(config.take<double>("factor"), options);
///     });
///
/// Not to be called while another thread makes layers. Throws ConfigError for a known name.
void register_layer(const std::string& class_name, std::function<LayerHandle(JsonObject&)> factory);
namespace detail {

/// Known class names, sorted.
std::vector<std::string> layer_class_names();

/// The name of a dtype policy as Keras writes it, a text or a serialized DTypePolicy. Throws
/// ConfigError naming the place.
std::string policy_name(const Json& json, const JsonPath& path);

/// A layer or model as Keras writes it: {"module", "class_name", "config", "registered_name"}.
Json layer_json(const Layer& layer);

/// Makes the models that stand in layers, which lie above this room: `depth` counts those around.
using ModelFactory = LayerHandle (*)(const Json& serialized, const JsonPath& path, int depth);
ModelFactory& model_factory();

}  // namespace detail

/// The layer or model of Keras' {"class_name", "config"} (keras.layers.deserialize), not built.
/// `path` is where that object lies, for errors. Only registered classes are made, nothing named in
/// a configuration is opened or run. Throws ConfigError naming the place.
LayerHandle layer_from_config(const Json& serialized, const detail::JsonPath& path);

/// Takes "name", "trainable" and "dtype", a name or a serialized DTypePolicy.
LayerOptions take_layer_options(JsonObject& config);

}  // namespace tessera
