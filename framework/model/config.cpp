#include <tessera/framework/model/config.hpp>

#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/internal/legacy_config.hpp>
#include <tessera/framework/graph/operations/operation_layer.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/internal/functional_config.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/internal/unsaved_layer.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Reads an Input's batch shape, null for unknown extents. Throws ConfigError.
Shape batch_shape_from(const Json& json, const JsonPath& path) {
  if (!json.is_array() || json.empty()) {
    json_fail(json, path, "a list of extents, the batch's first, with null for any");
  }
  Shape shape;
  for (size_t a = 0; a < json.size(); ++a) {
    const int64_t extent = json[a].is_null() ? -1 : json_as<int64_t>(json[a], path.index(a));
    if (!json[a].is_null() && (extent < 1 || extent > std::numeric_limits<int32_t>::max())) {
      json_fail(json[a], path.index(a), "null or an integer from 1 to 2147483647");
    }
    shape.push_back(extent);
  }
  return shape;
}

bool text_input(const Json& config) {
  return config.is_object() && config.contains("dtype") && config["dtype"] == "string";
}

LayerHandle input_from_config(const Json& json, const JsonPath& path) {
  Json rest = json;
  std::string dtype;
  if (json.is_object() && json.contains("dtype") && json.at("dtype").is_string() &&
      InputLayer::is_countable(json.at("dtype").get<std::string>())) {
    dtype = json.at("dtype").get<std::string>();
    rest.erase("dtype");
  }
  if (text_input(json)) {
    throw ConfigError(path.key("dtype").text(), "an input's dtype must be numeric or bool",
                      "\"string\"",
                      "look texts up before the model, with StringLookup or TextVectorization");
  }
  JsonObject config(rest, path);
  const char* key = config.has("batch_shape") ? "batch_shape" : "batch_input_shape";
  Shape shape = batch_shape_from(config.take<Json>(key), path.key(key));
  const int64_t batch_size = shape[0];
  shape.erase(shape.begin());
  const LayerOptions options = take_layer_options(config);
  for (const char* kind : {"sparse", "ragged", "optional"}) {
    if (!config.take_or(kind, false)) continue;
    json_fail(true, path.key(kind), "false: inputs are dense and always given");
  }
  config.finish();
  return Input(shape, {.dtype = dtype.empty() ? options.dtype : dtype,
                       .name = options.name,
                       .batch_size = batch_size});
}

LayerHandle sequential_from_config(const Json& json, const JsonPath& path, int depth) {
  JsonObject config(json, path);
  const LayerOptions options = take_layer_options(config);
  const Json list = config.take<Json>("layers");
  Json built_for = config.take_or<Json>("build_input_shape", {});
  config.finish();
  if (!list.is_array()) json_fail(list, path.key("layers"), "a list of layers");
  const Sequential model(
      {}, {.name = options.name, .trainable = options.trainable, .dtype = options.dtype});
  const bool implied = !list.empty() && list[0].is_object() && list[0].contains(implied_key);
  for (size_t i = 0; i < list.size(); ++i) {
    const size_t in_file = implied && i > 0 ? i - 1 : i;
    model.add(any_layer_from_config(list[i], path.key("layers").index(in_file), depth + 1));
  }
  if (built_for.is_array() && !built_for.empty() && !model->built()) {
    built_for[0] = nullptr;  // The batch size that it was built with is irrelevant.
    model.build(batch_shape_from(built_for, path.key("build_input_shape")));
  }
  return model;
}

[[maybe_unused]] const bool models_in_layers = [] {
  model_factory() = any_layer_from_config;
  return true;
}();

}  // namespace

Json serialize_layer(const Layer& layer) {
  if (const auto* const operation = dynamic_cast<const OperationLayer*>(&layer)) {
    return {{"module", operation->module()},
            {"class_name", layer.class_name()},
            {"config", layer.config()},
            {"registered_name", layer.class_name()}};
  }
  return layer_json(layer);
}

LayerHandle detail::any_layer_from_config(const Json& serialized, const JsonPath& path, int depth) {
  if (depth > 32) {
    throw ConfigError(path.text(), "models may nest at most 32 deep", "a deeper one",
                      "flatten the configuration");
  }
  if (!serialized.is_object()) json_fail(serialized, path, "a layer: {\"class_name\", \"config\"}");
  const auto found = serialized.find("class_name");
  const bool named = found != serialized.end() && found->is_string();
  const std::string name = named ? found->get<std::string>() : "";
  if (name != "InputLayer" && name != "Sequential" && name != "Functional") {
    return layer_from_config(serialized, path);
  }
  const auto config = serialized.find("config");
  if (config == serialized.end()) {
    throw ConfigError(path.text(), "a " + name + " must have a \"config\"", "none", "add it");
  }
  const JsonPath inner = path.key("config");
  if (name == "InputLayer") return input_from_config(*config, inner);
  if (name == "Sequential") return sequential_from_config(*config, inner, depth);
  return functional_from_config(*config, inner, depth);
}

ModelHandle model_from_config(const Json& serialized, const std::string& where) {
  try {
    const JsonPath path = JsonPath(where).from_python();
    const LayerHandle layer = any_layer_from_config(to_keras_3_config(serialized, path), path, 0);
    if (auto model = std::dynamic_pointer_cast<Model>(layer.layer())) return ModelHandle(model);
    throw ConfigError(where, "the configuration must be a model's",
                      "a layer, " + layer->class_name(), "make it with layer_from_config()");
  } catch (const Error&) {
    rethrow_at(where);
  }
}

ModelHandle model_from_json(const std::string& text, const std::string& where) {
  return model_from_config(parse_json(text, where), where);
}

std::string detail::model_to_json(const Model& model, int indent) {
  check_saved(model);
  return to_json_text(serialize_layer(model), indent);
}

std::string Model::to_json(int indent) const { return model_to_json(*this, indent); }

ModelHandle clone_model(const ModelHandle& model) {
  check_saved(model.model());
  return model_from_config(serialize_layer(model.model()), "clone_model");
}

}  // namespace tessera
