#pragma once

#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera {

/// Serializes any layer or model as Keras does: {"module", "class_name", "config",
/// "registered_name"} (keras.layers.serialize).
Json serialize_layer(const Layer& layer);

/// Makes a model with new weights from a configuration written by Model::config() or Keras,
/// including Keras 2 (keras.models.model_from_json): Sequential and Functional models of built-in
/// layers and of layers registered by register_layer(). `where` names the source in errors. Ignores
/// Keras' compile configuration: call compile(). Throws ConfigError naming the path for anything
/// that is not such a configuration.
ModelHandle model_from_config(const Json& serialized, const std::string& where = "config");
ModelHandle model_from_json(const std::string& text, const std::string& where = "config");

namespace detail {

/// Returns the configuration as text that keras.models.model_from_json() also reads
/// (keras.Model.to_json).
std::string model_to_json(const Model& model, int indent = 2);

}  // namespace detail

/// Makes a model with the same configuration, new layers and new weights
/// (keras.models.clone_model). Throws ConfigError for an unregistered user class.
ModelHandle clone_model(const ModelHandle& model);

}  // namespace tessera
