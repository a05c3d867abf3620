#include <tessera/framework/graph/internal/legacy_config.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/internal/keras_1_layer.hpp>
#include <tessera/framework/graph/internal/legacy_text.hpp>
#include <tessera/framework/graph/internal/tensorflow_operation.hpp>
#include <tessera/framework/nn/activations/activations.hpp>

namespace tessera::detail {
namespace {

/// Deepest nesting converted; any_layer_from_config() rejects deeper models.
constexpr int max_legacy_depth = 32;

bool is_model_class(const Json& layer) {
  const std::string name = text_at(layer, "class_name");
  return name == "Model" || name == "Functional" || name == "Sequential";
}

/// A key of earlier versions that has no effect at these values, and is dropped.
struct DroppedKey {
  const char* key;
  std::vector<Json> values = {};  ///< empty: any value
};

/// Returns the keys to drop, by the ending of the layer's class name.
const std::vector<std::pair<const char*, std::vector<DroppedKey>>>& dropped_keys() {
  static const std::vector<std::pair<const char*, std::vector<DroppedKey>>> table = {
      {"", {{"batch_input_shape"}}},
      {"RNN", {{"implementation"}, {"time_major", {false}}}},
      {"LSTM", {{"implementation"}, {"time_major", {false}}}},
      {"GRU", {{"implementation"}, {"time_major", {false}}}},
      {"Cell", {{"implementation"}}},
      {"ConvLSTM1D", {{"time_major", {false}}}},
      {"ConvLSTM2D", {{"time_major", {false}}}},
      {"ConvLSTM3D", {{"time_major", {false}}}},
      {"Embedding", {{"input_length"}}},
      {"BatchNormalization",
       {{"fused"}, {"virtual_batch_size", {nullptr}}, {"adjustment", {nullptr}}}},
      {"DepthwiseConv1D", {{"groups", {1}}}},
      {"DepthwiseConv2D", {{"groups", {1}}}},
      {"SeparableConv1D",
       {{"groups", {1}}, {"kernel_initializer"}, {"kernel_regularizer"}, {"kernel_constraint"}}},
      {"SeparableConv2D",
       {{"groups", {1}}, {"kernel_initializer"}, {"kernel_regularizer"}, {"kernel_constraint"}}},
      {"Conv1DTranspose", {{"groups", {1}}}},
      {"Conv2DTranspose", {{"groups", {1}}}},
      {"Conv3DTranspose", {{"groups", {1}}}},
      {"Attention", {{"causal", {false}}}},
      {"MultiHeadAttention",
       {{"query_shape"},
        {"key_shape"},
        {"value_shape"},
        {"softmax_robust_masking", {nullptr, false}}}},
  };
  return table;
}

/// Which Keras wrote a configuration.
enum class Writer : uint8_t { keras_1, keras_2, keras_3 };

/// Returns the writer by its version or, without one, by keys that only it writes.
Writer writer_of(const Json& serialized) {
  const std::string version = text_at(serialized, "keras_version");
  if (version.starts_with("1.")) return Writer::keras_1;
  if (version.starts_with("2.")) return Writer::keras_2;
  if (!version.empty()) return Writer::keras_3;
  const std::string text = serialized.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const char* key : {"\"W_regularizer\"", "\"border_mode\""}) {
    if (text.find(key) != std::string::npos) return Writer::keras_1;
  }
  const bool earlier = text.find("\"batch_input_shape\"") != std::string::npos;
  return earlier ? Writer::keras_2 : Writer::keras_3;
}

class Translation {
 public:
  explicit Translation(Writer writer) : writer_(writer) {}

  /// Converts a layer or model with its "class_name" and "config".
  void object(Json& json, const JsonPath& path, int depth);

 private:
  void sequential(Json& json, const JsonPath& path, int depth);
  void functional(Json& config, const JsonPath& path, int depth);
  void layer(Json& config, const std::string& class_name, const JsonPath& path, int depth);
  /// Converts the layers in a layer's arguments.
  void layers_inside(Json& config, const std::string& class_name, const JsonPath& path, int depth);
  static void refuse_operation(const Json& json, const JsonPath& path);

  Writer writer_;
};

/// Converts an argument of a layer that is an object itself.
void translate_argument(const std::string& key, Json& value) {
  if (!value.is_object()) return;
  Json* config = config_of_layer(value);
  if (key == "dtype" && text_at(value, "class_name").starts_with("Policy") && config) {
    value = config->contains("name") ? (*config)["name"] : Json();
  } else if (text_at(value, "type") == "ndarray" && value.contains("value")) {
    value = Json(value["value"]);  // Keras 2 wrote NumPy's numbers so.
  } else if (key.ends_with("_initializer") && config) {
    config->erase("dtype");
    Json& drawn_from = (*config)["distribution"];
    if (drawn_from == "normal") drawn_from = "truncated_normal";
    if (drawn_from.is_null()) config->erase("distribution");
  }
}

/// Names hard_sigmoid of Keras 1 and 2 as the function that it was.
void name_earlier_sigmoid(const std::string& key, Json& value) {
  if (key != "activation" && !key.ends_with("_activation")) return;
  const bool is_function = text_at(value, "class_name") == "function";
  const Json& name = is_function && value.contains("config") ? value["config"] : value;
  if (name == "hard_sigmoid") value = keras_2_hard_sigmoid;
}

/// Whether a value is the one at which a key has no effect; Python programs may write 0 for false.
bool is_harmless(const Json& value, const Json& harmless) {
  const bool number = harmless.is_boolean() && value.is_number();
  return number ? value == (harmless == true ? 1 : 0) : value == harmless;
}

/// Returns an InputLayer with the layer's batch shape, which is not in the file.
Json input_before(const Json& layer, const std::string& dtype) {
  const Json& config = layer["config"];
  const std::string name = text_at(config, "name");
  return {{"class_name", "InputLayer"},
          {implied_key, true},
          {"config",
           {{"batch_shape", config["batch_input_shape"]},
            {"dtype", dtype.empty() ? "float32" : dtype},
            {"name", name.empty() ? "input_layer" : name + "_input"}}}};
}

void Translation::object(Json& json, const JsonPath& path, int depth) {
  if (depth > max_legacy_depth || !json.is_object()) return;
  if (writer_ == Writer::keras_1) to_keras_2_layer(json, path);
  const std::string class_name = text_at(json, "class_name");
  refuse_operation(json, path);
  if (class_name == "Model") json["class_name"] = "Functional";
  if (class_name == "Sequential") return sequential(json, path, depth);
  Json* config = config_of_layer(json);
  if (!config) return;
  if (is_model_class(json)) {
    functional(*config, path.key("config"), depth);
  } else if (class_name != "InputLayer") {
    layer(*config, class_name, path.key("config"), depth);
  }
}

/// Throws ConfigError for TensorFlow operations and cuDNN kernels, which Keras 2 wrote as layers.
void Translation::refuse_operation(const Json& json, const JsonPath& path) {
  static const std::set<std::string> operations = {"TFOpLambda", "SlicingOpLambda",
                                                   "TensorFlowOpLayer"};
  const std::string class_name = text_at(json, "class_name");
  const bool cudnn = class_name == "CuDNNLSTM" || class_name == "CuDNNGRU";
  if (!cudnn && !operations.contains(class_name)) return;
  const Json config = json.contains("config") ? json["config"] : Json();
  const std::string function = text_at(config, "function");
  throw ConfigError(path.text(), "layers must be those of Keras 3",
                    str(in_quotes(text_at(config, "name")), ", a ", class_name,
                        function.empty() ? "" : " of " + in_quotes(function)),
                    cudnn ? "make it a " + class_name.substr(5) + " with Keras 2 first"
                          : "replace this TensorFlow operation by a layer");
}

void Translation::sequential(Json& json, const JsonPath& path, int depth) {
  if (json.contains("config") && json["config"].is_array()) {
    json["config"] = Json{{"layers", Json(json["config"])}};
  }
  Json* config = config_of_layer(json);
  if (!config || !config->contains("layers") || !(*config)["layers"].is_array()) return;
  Json& layers = (*config)["layers"];
  size_t implied = 0;
  if (!layers.empty()) {
    const Json* first = config_of_layer(layers[0]);
    if (first && first->contains("batch_input_shape") &&
        text_at(layers[0], "class_name") != "InputLayer") {
      const std::string dtype = text_at(*first, "dtype");
      layers.insert(
          layers.begin(),
          input_before(layers[0], dtype.empty() ? text_at(*first, "input_dtype") : dtype));
      implied = 1;
    }
  }
  const JsonPath at = path.key("config").key("layers");
  for (size_t i = implied; i < layers.size(); ++i) {
    object(layers[i], at.index(i - implied), depth + 1);
  }
}

/// Whether this is [layer, call, output]; in calls the arguments by name may follow.
bool is_history(const Json& json) {
  return json.is_array() && (json.size() == 3 || json.size() == 4) && json[0].is_string() &&
         json[1].is_number_integer() && json[2].is_number_integer();
}

/// Counts the calls of nested models from 0; Keras 2 began at 1, since their own graph was call 0.
void count_from_0(Json& history, const std::set<std::string>& models) {
  if (!is_history(history) || !models.contains(history[0].get<std::string>())) return;
  const auto call = history[1].get<int64_t>();
  if (call > 0) history[1] = call - 1;
}

/// Converts a tensor of Keras 2; a constant to its value, if `constants` are allowed.
Json tensor_of(Json history, const std::set<std::string>& models, const JsonPath& path,
               bool constants = false) {
  const bool is_constant =
      history.is_array() && history.size() >= 3 && history[0] == "_CONSTANT_VALUE";
  if (is_constant) {
    if (constants) return history[2];
    json_fail(history[2], path, "a tensor: constants are not supported");
  }
  if (!is_history(history)) json_fail(history, path, "[layer, call, output]");
  count_from_0(history, models);
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"keras_history", {history[0], history[1], history[2]}}}}};
}

/// Converts an argument given by name: a tensor, a list of tensors, or a plain value.
Json named_argument(const Json& json, const std::set<std::string>& models, const JsonPath& path) {
  if (is_history(json)) return tensor_of(json, models, path);
  if (!json.is_array()) return json;
  Json list = Json::array();
  for (size_t i = 0; i < json.size(); ++i) {
    list.push_back(named_argument(json[i], models, path.index(i)));
  }
  return list;
}

/// Converts a call of Keras 2: a list of tensors, each with the call's named arguments.
Json keras_3_call(Json call, const std::set<std::string>& models, const JsonPath& path,
                  bool constants) {
  if (!call.is_array()) return call;
  if (is_history(call) || (!call.empty() && call[0].is_string())) call = Json::array({call});
  Json tensors = Json::array(), kwargs = Json::object();
  for (size_t i = 0; i < call.size(); ++i) {
    const JsonPath at = path.index(i);
    tensors.push_back(tensor_of(call[i], models, at, constants));
    if (call[i].size() < 4 || !call[i][3].is_object()) continue;
    for (const auto& [key, value] : call[i][3].items()) {
      kwargs[key] = named_argument(value, models, at.index(3).key(key));
    }
  }
  Json args = Json::array();
  args.push_back(tensors.size() == 1 ? tensors[0] : tensors);
  return {{"args", args}, {"kwargs", kwargs}};
}

void Translation::functional(Json& config, const JsonPath& path, int depth) {
  if (!config.contains("layers") || !config["layers"].is_array()) return;
  std::set<std::string> models, chains;
  for (const Json& entry : config["layers"]) {
    if (!is_model_class(entry)) continue;
    models.insert(text_at(entry, "name"));
    if (text_at(entry, "class_name") == "Sequential") chains.insert(text_at(entry, "name"));
  }
  bool lists = false;
  for (size_t i = 0; i < config["layers"].size(); ++i) {
    Json& entry = config["layers"][i];
    const JsonPath at = path.key("layers").index(i);
    const bool operation = has_keras_operation(entry);
    if (!operation) object(entry, at, depth + 1);
    if (!entry.is_object() || !entry.contains("inbound_nodes")) continue;
    Json& calls = entry["inbound_nodes"];
    for (size_t c = 0; calls.is_array() && c < calls.size(); ++c) {
      if (!calls[c].is_array()) continue;
      lists = true;
      calls[c] = keras_3_call(calls[c], models, at.key("inbound_nodes").index(c), operation);
    }
    if (operation) entry = to_keras_operation(entry, at);
  }
  // Here Keras still counts the calls of a Functional model from 1.
  for (const char* key : {"input_layers", "output_layers"}) {
    if (!lists || !config.contains(key) || !config[key].is_array()) continue;
    count_from_0(config[key], chains);
    for (Json& end : config[key]) count_from_0(end, chains);
  }
}

void Translation::layers_inside(Json& config, const std::string& class_name, const JsonPath& path,
                                int depth) {
  for (const char* inner :
       {"layer", "backward_layer", "activation", "recurrent_activation", "cell"}) {
    if (config.contains(inner)) object(config[inner], path.key(inner), depth + 1);
  }
  if (class_name == "StackedRNNCells" && config.contains("cells") && config["cells"].is_array()) {
    Json& cells = config["cells"];
    const JsonPath inner = path.key("cells");
    for (size_t i = 0; i < cells.size(); ++i) object(cells[i], inner.index(i), depth + 1);
  }
}

void Translation::layer(Json& config, const std::string& class_name, const JsonPath& path,
                        int depth) {
  for (const auto& [kind, keys] : dropped_keys()) {
    if (!class_name.ends_with(kind)) continue;
    for (const DroppedKey& dropped : keys) {
      if (!config.contains(dropped.key)) continue;
      const Json& value = config[dropped.key];
      bool known = dropped.values.empty();
      for (const Json& harmless : dropped.values) known = known || is_harmless(value, harmless);
      if (!known) {
        json_fail(value, path.key(dropped.key),
                  str(dropped.values.back().dump(), " in ", in_quotes(text_at(config, "name")),
                      ": Keras 3 supports no other value"));
      }
      config.erase(dropped.key);
    }
  }
  for (const auto& [key, value] : config.items()) {
    translate_argument(key, value);
    if (writer_ != Writer::keras_3) name_earlier_sigmoid(key, value);
  }
  layers_inside(config, class_name, path, depth);
  if (class_name == "BatchNormalization" && config.contains("axis")) {
    const Json axis = config["axis"];
    if (axis.is_array() && axis.size() == 1) config["axis"] = axis[0];
  }
  if (class_name == "LeakyReLU" && config.contains("alpha")) {
    config["negative_slope"] = Json(config["alpha"]);
    config.erase("alpha");
  }
  const bool is_gru = class_name == "GRU" || class_name == "GRUCell";
  if (is_gru && writer_ != Writer::keras_3 && !config.contains("reset_after")) {
    config["reset_after"] = false;
  }
}

/// Returns what get_config() of a model returned with the model's class: a list of a Sequential's
/// layers, or an object with "layers" and, in a Functional model, "input_layers".
Json with_class(Json config) {
  const bool list = config.is_array() && !config.empty() && config[0].is_object() &&
                    config[0].contains("class_name");
  if (list) return {{"class_name", "Sequential"}, {"config", {{"layers", std::move(config)}}}};
  if (!config.is_object() || config.contains("class_name") || !config.contains("layers")) {
    return config;
  }
  const char* kind = config.contains("input_layers") ? "Functional" : "Sequential";
  Json version = config.contains("keras_version") ? config["keras_version"] : Json();
  config.erase("keras_version");
  Json wrapped = {{"class_name", kind}, {"config", std::move(config)}};
  if (!version.is_null()) wrapped["keras_version"] = std::move(version);
  return wrapped;
}

}  // namespace

Json to_keras_3_config(Json serialized, const JsonPath& path) {
  serialized = with_class(std::move(serialized));
  if (!serialized.is_object()) return serialized;
  Translation translation(writer_of(serialized));
  serialized.erase("keras_version");
  serialized.erase("backend");
  translation.object(serialized, path, 0);
  return serialized;
}

}  // namespace tessera::detail
