#pragma once

#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera {

/// A layer as Keras writes it: {"module", "class_name", "config", "registered_name"}; of any layer,
/// models included (keras.layers.serialize).
Json serialize_layer(const Layer& layer);

/// The model of a configuration that Model::config() or Keras wrote, also Keras 2, with new weights
/// (keras.models.model_from_json): Sequential and Functional models of built-in layers, and of the
/// user's own that register_layer() knows. `where` names the source in errors. What Keras writes of
/// compile() is not read: the model is compiled anew. Throws ConfigError naming the place for
/// anything that is not such a configuration.
ModelHandle model_from_config(const Json& serialized, const std::string& where = "config");
ModelHandle model_from_json(const std::string& text, const std::string& where = "config");

namespace detail {

/// The configuration as text that keras.models.model_from_json() also reads
/// (keras.Model.to_json).
std::string model_to_json(const Model& model, int indent = 2);

}  // namespace detail

/// A model of new layers with the same configuration and new weights (keras.models.clone_model).
/// Throws ConfigError for a class of the user's own that is not registered.
ModelHandle clone_model(const ModelHandle& model);

}  // namespace tessera
