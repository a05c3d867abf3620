#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

namespace detail {

/// Factories of layers from their "config", by class name.
using LayerFactories = ConfigFactories<LayerHandle>;

}  // namespace detail

/// Arguments of register_layer().
struct RegisterLayerOptions {
  /// The package under which Python registers the class: `"my"` for
  /// `@register_keras_serializable(package="my")`; `"Custom"` is the decorator's default. Without
  /// one, Keras finds the class by `custom_objects={"Scale": Scale}`.
  std::string package = "";
};

/// Registers a layer class of one's own for files (keras.saving.register_keras_serializable):
///
///     register_layer("Scale", [](JsonObject& config) {
///       const LayerOptions options = take_layer_options(config);
///       return make_layer<ScaleLayer>(config.take<double>("factor"), options);
///     }, {.package = "my"});
///
/// Files name the class as Keras does, "my>Scale", and keep the module in which a file that was
/// read says that Python defines it. Not thread-safe: register before other threads create layers.
/// Throws ConfigError for a name that is taken in its package, or is that of a layer of Keras'.
void register_layer(const std::string& class_name, std::function<LayerHandle(JsonObject&)> factory,
                    const RegisterLayerOptions& options = {});
namespace detail {

/// Registers a layer class of the library. Throws ConfigError for a name that is taken.
void register_library_layer(const std::string& class_name,
                            std::function<LayerHandle(JsonObject&)> factory);

/// Returns the registered class names, sorted.
std::vector<std::string> layer_class_names();

/// Returns the Keras layers that are not implemented, so that errors do not suggest a similar name
/// for them.
const std::vector<std::string>& keras_only_layers();

/// Reads the name of a dtype policy: a string or a serialized DTypePolicy. Throws ConfigError
/// naming the JSON path.
std::string policy_name(const Json& json, const JsonPath& path);

/// Whether the layer is a Functional model.
bool is_functional(const Layer& layer);

/// Serializes a layer or model as Keras does: {"module", "class_name", "config",
/// "registered_name"}.
Json layer_json(const Layer& layer);

/// Creates models nested in layers; set by framework/model, which this room may not include.
/// `depth` is the number of enclosing models.
using ModelFactory = LayerHandle (*)(const Json& serialized, const JsonPath& path, int depth);
ModelFactory& model_factory();

}  // namespace detail

/// Creates the unbuilt layer or model of Keras' {"class_name", "config"}
/// (keras.layers.deserialize). `path` is the object's JSON path, for errors. Safe for untrusted
/// input: only registered classes are created; no file or code that a configuration names is opened
/// or run. Throws ConfigError naming the JSON path.
LayerHandle layer_from_config(const Json& serialized, const JsonPath& path);

/// Takes "name", "trainable" and "dtype" (a name or a serialized DTypePolicy) from `config`.
LayerOptions take_layer_options(JsonObject& config);

}  // namespace tessera
