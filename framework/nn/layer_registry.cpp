#include <tessera/framework/nn/layer_registry.hpp>

#include <algorithm>
#include <map>

namespace tessera {

using namespace detail;

namespace {

constexpr size_t max_name_bytes = 256;
/// Maximum number of typing mistakes in the name of a layer class.
constexpr size_t max_mistakes = 2;

/// The factories of all classes, those of users by package and name: "my>Scale".
LayerFactories& layer_table() {
  static LayerFactories factories;
  return factories;
}

/// Returns the class names by Keras' other names of them.
const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> names = {
      {"AvgPool1D", "AveragePooling1D"},
      {"AvgPool2D", "AveragePooling2D"},
      {"AvgPool3D", "AveragePooling3D"},
      {"Convolution1D", "Conv1D"},
      {"Convolution1DTranspose", "Conv1DTranspose"},
      {"Convolution2D", "Conv2D"},
      {"Convolution2DTranspose", "Conv2DTranspose"},
      {"Convolution3D", "Conv3D"},
      {"Convolution3DTranspose", "Conv3DTranspose"},
      {"GlobalAvgPool1D", "GlobalAveragePooling1D"},
      {"GlobalAvgPool2D", "GlobalAveragePooling2D"},
      {"GlobalAvgPool3D", "GlobalAveragePooling3D"},
      {"GlobalMaxPool1D", "GlobalMaxPooling1D"},
      {"GlobalMaxPool2D", "GlobalMaxPooling2D"},
      {"GlobalMaxPool3D", "GlobalMaxPooling3D"},
      {"MaxPool1D", "MaxPooling1D"},
      {"MaxPool2D", "MaxPooling2D"},
      {"MaxPool3D", "MaxPooling3D"},
      {"SeparableConvolution1D", "SeparableConv1D"},
      {"SeparableConvolution2D", "SeparableConv2D"}};
  return names;
}

/// The names of users' classes in layer_table(), by class name; of one in several packages, the
/// first.
std::map<std::string, std::string>& own_classes() {
  static std::map<std::string, std::string> names;
  return names;
}

void add_factory(const std::string& name, std::function<LayerHandle(JsonObject&)> factory) {
  if (layer_table().emplace(name, std::move(factory)).second) return;
  throw ConfigError("register_layer", "class names are unique", in_quotes(name) + " twice",
                    "give the class another name");
}

/// Returns the name in layer_table() of a serialized class: that which Keras registered it under,
/// or else its class name's.
std::string name_in_table(const std::string& class_name, const Json& serialized) {
  const auto registered = serialized.find("registered_name");
  if (registered != serialized.end() && registered->is_string()) {
    const auto& name = registered->get_ref<const std::string&>();
    if (name.ends_with(">" + class_name) && layer_table().contains(name)) return name;
  }
  const auto own = own_classes().find(class_name);
  if (own != own_classes().end()) return own->second;
  const auto other = other_names().find(class_name);
  return other == other_names().end() ? class_name : other->second;
}

/// Throws ConfigError for a name that is unsafe in paths, files or terminals.
void check_name(const std::string& name, const JsonPath& path) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f && byte != '/';
  });
  if (printable && name.size() <= max_name_bytes) return;
  throw ConfigError(path.text(),
                    str("a layer's name has at most ", max_name_bytes,
                        " bytes, no control character and no \"/\""),
                    in_quotes(name), "give it another name");
}

}  // namespace

bool detail::is_functional(const Layer& layer) { return layer.class_name() == "Functional"; }

std::string detail::policy_name(const Json& json, const JsonPath& path) {
  if (json.is_string()) return json.get_ref<const std::string&>();
  if (!json.is_object()) json_fail(json, path, "a name or an object with \"class_name\"");
  auto [class_name, config] = read_serialized(json, path);
  if (class_name == "QuantizedDTypePolicy") {
    const auto mode = config.take<std::string>("mode");
    const auto source = config.take<std::string>("source_name");
    config.finish();
    return str(mode, "_from_", source);
  }
  if (class_name.ends_with("DTypePolicy") && class_name != "DTypePolicy") {
    throw ConfigError(path.key("class_name").text(),
                      "a policy of floating dtypes, or \"QuantizedDTypePolicy\" of mode int8",
                      in_quotes(class_name), "save the model before it is quantized");
  }
  if (class_name != "DTypePolicy") {
    json_fail(class_name, path.key("class_name"), "\"DTypePolicy\"");
  }
  const auto name = config.take<std::string>("name");
  config.finish();
  return name;
}

namespace {

/// Returns whether a program wrote the configuration, which then has no typing mistakes.
bool is_written_by_program(const Json& serialized) {
  return serialized.contains("registered_name") || serialized["config"].contains("trainable");
}

[[noreturn]] void fail_unknown(const std::string& name, const Json& serialized,
                               const JsonPath& path) {
  const std::vector<std::string>& keras_only = keras_only_layers();
  const bool is_keras = std::find(keras_only.begin(), keras_only.end(), name) != keras_only.end();
  std::string fix = "register your own class with register_layer()";
  if (name == "Lambda") {
    throw ConfigError(path.text(), "the layer class must be registered",
                      "\"Lambda\", whose function is Python code",
                      "write the function as a layer class, and register it as \"Lambda\" with "
                      "register_layer()");
  }
  if (!is_keras && !is_written_by_program(serialized)) {
    const std::string near = nearest(name, layer_class_names(), max_mistakes);
    if (!near.empty()) fix = str("write ", in_quotes(near), ", or ", fix);
  }
  throw ConfigError(path.text(), "the layer class must be registered",
                    in_quotes(name) + (is_keras ? ", a Keras layer that is not implemented" : ""),
                    fix);
}

}  // namespace

void register_layer(const std::string& class_name, std::function<LayerHandle(JsonObject&)> factory,
                    const RegisterLayerOptions& options) {
  const bool plain = class_name.find('>') == std::string::npos &&
                     options.package.find('>') == std::string::npos && !class_name.empty();
  if (!plain) {
    throw ConfigError("register_layer", "class and package are names without \">\"",
                      in_quotes(str(options.package, '>', class_name)),
                      "pass register_layer(\"Scale\", ..., {.package = \"my\"})");
  }
  if (layer_table().contains(class_name) && !own_classes().contains(class_name)) {
    throw ConfigError("register_layer", "class names differ from those of the library",
                      in_quotes(class_name), "give the class another name");
  }
  const std::string name =
      options.package.empty() ? class_name : str(options.package, '>', class_name);
  add_factory(name, std::move(factory));
  own_classes().emplace(class_name, name);
}

void detail::register_library_layer(const std::string& class_name,
                                    std::function<LayerHandle(JsonObject&)> factory) {
  add_factory(class_name, std::move(factory));
}

namespace {

/// Whether Keras or this library defines the class.
bool is_library_class(const Layer& layer) {
  const std::string name = layer.class_name();
  if (name == "InputLayer" || (layer.is_model() && (name == "Sequential" || name == "Model"))) {
    return true;
  }
  return layer_table().contains(name) && !own_classes().contains(name);
}

/// Returns the name under which Python registers a class of one's own.
std::string registered_name(const Layer& layer) {
  if (const PythonNames names = layer.python_names(); !names.registered_name.empty()) {
    return names.registered_name;
  }
  const auto own = own_classes().find(layer.class_name());
  return own == own_classes().end() ? layer.class_name() : own->second;
}

/// Keeps where a file says that Python defines a class of one's own.
void keep_python_names(Layer& layer, const Json& serialized) {
  if (is_library_class(layer)) return;
  const auto text = [&](const char* key) {
    const auto value = serialized.find(key);
    return value != serialized.end() && value->is_string() ? value->get<std::string>() : "";
  };
  std::string module = text("module");
  // Earlier versions wrote Keras' module for all classes.
  if (module.starts_with("keras")) module.clear();
  layer.set_python_names({std::move(module), text("registered_name")});
}

}  // namespace

Json detail::layer_json(const Layer& layer) {
  // Layers that Keras defines outside keras.layers.
  static const std::map<std::string, std::string> elsewhere = {
      {"LayerScale", "keras.src.applications.convnext"},
      {"CustomScaleLayer", "keras.src.applications.inception_resnet_v2"}};
  if (const auto entry = elsewhere.find(layer.class_name()); entry != elsewhere.end()) {
    return {{"module", entry->second},
            {"class_name", layer.class_name()},
            {"config", layer.config()},
            {"registered_name", layer.class_name()}};
  }
  const bool functional = is_functional(layer);
  if (!functional && !is_library_class(layer)) {
    const std::string module = layer.python_names().module;
    return {{"module", module.empty() ? Json() : Json(module)},
            {"class_name", layer.class_name()},
            {"config", layer.config()},
            {"registered_name", registered_name(layer)}};
  }
  return {{"module", functional         ? "keras.src.models.functional"
                     : layer.is_model() ? "keras"
                                        : "keras.layers"},
          {"class_name", layer.class_name()},
          {"config", layer.config()},
          {"registered_name", functional ? Json("Functional") : Json()}};
}

ModelFactory& detail::model_factory() {
  static ModelFactory factory = nullptr;
  return factory;
}

const std::vector<std::string>& detail::keras_only_layers() {
  static const std::vector<std::string> names = {"MelSpectrogram", "STFTSpectrogram"};
  return names;
}

std::vector<std::string> detail::layer_class_names() {
  std::vector<std::string> names;
  for (const auto& factory : layer_table()) names.push_back(factory.first);
  return names;
}

LayerHandle layer_from_config(const Json& serialized, const JsonPath& path) {
  const bool model =
      serialized.is_object() && serialized.contains("class_name") &&
      (serialized["class_name"] == "Sequential" || serialized["class_name"] == "Functional");
  if (model && model_factory()) return model_factory()(serialized, path.from_python(), 1);
  auto [name, config] = read_serialized(serialized, path);
  const std::string known = name_in_table(name, serialized);
  if (!layer_table().contains(known)) fail_unknown(name, serialized, path);
  LayerHandle layer = made_from("layer class", layer_table(), known, std::move(config), path);
  keep_python_names(*layer.layer(), serialized);
  return layer;
}

LayerOptions take_layer_options(JsonObject& config) {
  LayerOptions options;
  options.name = config.take_or<std::string>("name", "");
  check_name(options.name, config.path().key("name"));
  options.trainable = config.take_or("trainable", true);
  if (const auto dtype = config.take_optional<Json>("dtype")) {
    const JsonPath path = config.path().key("dtype");
    try {
      options.dtype = policy_name(*dtype, path);
      dtype_policy(options.dtype);
    } catch (const Error&) {
      rethrow_at(path.text());
    }
  }
  return options;
}

}  // namespace tessera
