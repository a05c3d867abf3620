#include <tessera/framework/model/internal/functional_config.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera::detail {
namespace {

Json shape_json(const Shape& shape) {
  Json json = Json::array();
  for (int64_t extent : shape) json.push_back(extent < 0 ? Json() : Json(extent));
  return json;
}

/// [layer, call, output], as Keras points at a tensor.
Json history_json(const FunctionalModel& model, const SymbolicTensor& tensor) {
  const Node& node = *tensor.node();
  return {node.layer->name(), model.call_index(node), tensor.index()};
}

Json tensor_json(const FunctionalModel& model, const SymbolicTensor& tensor) {
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"shape", shape_json(tensor.shape())},
                      {"dtype", to_string(DTypePolicy{tensor.dtype(), tensor.dtype()})},
                      {"keras_history", history_json(model, tensor)}}}};
}

/// Layers that take first states.
const std::set<std::string> recurrent = {"Bidirectional", "GRU", "LSTM", "SimpleRNN"};

/// As Keras' layer takes its inputs: as a list, one by one, or with first states beside them.
Json call_json(const FunctionalModel& model, const Node& node) {
  Json inputs = Json::array();
  for (const SymbolicTensor& input : node.inputs) inputs.push_back(tensor_json(model, input));
  const std::string layer = node.layer->class_name();
  Json args = Json::array(), kwargs = Json::object();
  if (layer == "MultiHeadAttention") {
    if (inputs.size() > 3) kwargs["attention_mask"] = inputs[3];
    for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) args.push_back(inputs[i]);
  } else if (inputs.size() > 1 && recurrent.contains(layer)) {
    args.push_back(inputs[0]);
    kwargs["initial_state"] = Json(inputs.begin() + 1, inputs.end());
  } else {
    args.push_back(inputs.size() == 1 ? inputs[0] : inputs);
  }
  return {{"args", args}, {"kwargs", kwargs}};
}

Json ends_json(const FunctionalModel& model, const std::vector<SymbolicTensor>& ends) {
  Json list = Json::array();
  for (const SymbolicTensor& tensor : ends) list.push_back(history_json(model, tensor));
  return list;
}

/// Which tensor a configuration means.
struct TensorName {
  std::string layer;
  int64_t call;
  int64_t output;
};

TensorName tensor_name(const Json& json, const JsonPath& path) {
  if (!json.is_array() || json.size() < 3) json_fail(json, path, "[layer, call, output]");
  return {json_as<std::string>(json[0], path.index(0)), json_as<int64_t>(json[1], path.index(1)),
          json_as<int64_t>(json[2], path.index(2))};
}

/// What Keras calls a tensor that a layer takes by name, in the order of the inputs here.
constexpr std::array<const char*, 4> named_inputs = {"value", "key", "attention_mask",
                                                     "initial_state"};

/// Of an operation, as Keras has them in models where masks are made: masks follow by themselves.
bool makes_mask(const Json& json) {
  return json.is_object() && json.contains("module") && json["module"].is_string() &&
         json["module"].get<std::string>().starts_with("keras.src.ops");
}

bool is_tensor(const Json& json) {
  return json.is_object() && json.contains("class_name") &&
         json["class_name"] == "__keras_tensor__";
}

/// What a layer is told at its calls in Keras, and when it is made here.
Json with_call_options(Json json) {
  if (!json.is_object() || !json.contains("inbound_nodes") || !json.contains("config")) return json;
  for (const char* option : {"use_causal_mask", "return_attention_scores"}) {
    for (const Json& call : json["inbound_nodes"]) {
      if (!call.is_object() || !call.contains("kwargs")) continue;
      const Json& given = call["kwargs"];
      if (given.is_object() && given.value(option, false)) json["config"][option] = true;
    }
  }
  return json;
}

/// From the layer to its calls.
void move_call_options(Json& json) {
  for (const char* option : {"use_causal_mask", "return_attention_scores"}) {
    if (!json["config"].erase(option)) continue;
    for (Json& call : json["inbound_nodes"]) call["kwargs"][option] = true;
  }
}

/// Makes the layers of a configuration and calls them as soon as what they read is there.
class GraphReader {
 public:
  void add_layer(const Json& json, const JsonPath& path, int depth) {
    if (makes_mask(json)) return;
    const LayerHandle layer = any_layer_from_config(with_call_options(json), path, depth + 1);
    std::string name = layer->name();
    if (json.contains("name")) json_get(json["name"], path.key("name"), name);
    if (name.empty()) json_fail(json, path, "a layer with a name");
    if (!layers_.emplace(name, layer).second) {
      throw ConfigError(path.text(), "layers differ in name", "two layers named " + in_quotes(name),
                        "rename one of them");
    }
    if (dynamic_cast<const InputLayer*>(layer.layer().get()) != nullptr) {
      tensors_[{name, 0}] = layer.outputs(std::vector<SymbolicTensor>{});
      return;
    }
    const Json calls = json.contains("inbound_nodes") ? json["inbound_nodes"] : Json::array();
    if (!calls.is_array()) json_fail(calls, path.key("inbound_nodes"), "a list of calls");
    for (size_t i = 0; i < calls.size(); ++i) {
      add_call(name, int64_t(i), calls[i], path.key("inbound_nodes").index(i));
    }
  }

  /// Throws ConfigError if calls are left whose inputs nothing makes.
  void run() {
    for (bool progress = true; progress && !calls_.empty();) {
      progress = false;
      for (auto call = calls_.begin(); call != calls_.end();) {
        progress = try_call(*call) || progress;
        call = tensors_.contains({call->layer, call->number}) ? calls_.erase(call) : call + 1;
      }
    }
    if (calls_.empty()) return;
    const Call& left = calls_[0];
    throw ConfigError(left.path.text(), "a call's inputs are outputs of other layers' calls",
                      str("a call of ", in_quotes(left.layer), " on tensors that nothing makes"),
                      "correct \"keras_history\"");
  }

  std::vector<SymbolicTensor> ends(const Json& json, const JsonPath& path) const {
    if (!json.is_array()) json_fail(json, path, "a list of tensors");
    const bool single = !json.empty() && json[0].is_string();
    std::vector<SymbolicTensor> list;
    for (size_t i = 0; i < (single ? 1 : json.size()); ++i) {
      const JsonPath at = single ? path : path.index(i);
      const TensorName name = tensor_name(single ? json : json[i], at);
      const SymbolicTensor* tensor = find(name);
      if (tensor == nullptr) json_fail(single ? json : json[i], at, "a tensor of the model");
      list.push_back(*tensor);
    }
    return list;
  }

 private:
  struct Call {
    std::string layer;
    int64_t number;
    std::vector<TensorName> inputs;
    JsonPath path;
  };

  void add_call(const std::string& layer, int64_t number, const Json& json, const JsonPath& path) {
    JsonObject call(json, path);
    const Json args = call.take<Json>("args");
    const Json kwargs = call.take_or<Json>("kwargs", Json::object());
    call.finish();
    const JsonPath at = path.key("args");
    if (!args.is_array() || args.empty()) json_fail(args, at, "a list of arguments");
    if (!kwargs.is_object()) json_fail(kwargs, path.key("kwargs"), "an object");
    Call made{layer, number, {}, path};
    for (size_t i = 0; i < args.size(); ++i) add_inputs(made, args[i], at.index(i));
    for (const char* key : named_inputs) {
      if (!kwargs.contains(key) || kwargs[key].is_null()) continue;
      // The key is the value where it is not given.
      if (key == std::string("attention_mask") && made.inputs.size() == 2) {
        made.inputs.push_back(made.inputs[1]);
      }
      add_inputs(made, kwargs[key], path.key("kwargs").key(key));
    }
    for (const auto& [key, value] : kwargs.items()) {
      const bool input = std::find(named_inputs.begin(), named_inputs.end(), key) !=
                         named_inputs.end();
      const bool mask = key.ends_with("mask") && is_tensor(value);
      if (input || mask || value.is_null() || value.is_boolean()) continue;
      json_fail(value, path.key("kwargs").key(key), "null, true or false");
    }
    calls_.push_back(std::move(made));
  }

  /// A tensor or a list of them.
  static void add_inputs(Call& call, const Json& json, const JsonPath& path) {
    if (json.is_array()) {
      for (size_t i = 0; i < json.size(); ++i) add_inputs(call, json[i], path.index(i));
      return;
    }
    JsonObject tensor(json, path);
    const Json config = tensor.take<Json>("config");
    JsonObject inner(config, path.key("config"));
    const Json history = inner.take<Json>("keras_history");
    call.inputs.push_back(tensor_name(history, path.key("config").key("keras_history")));
  }

  const SymbolicTensor* find(const TensorName& name) const {
    const auto found = tensors_.find({name.layer, name.call});
    if (found == tensors_.end()) return nullptr;
    const bool fits = name.output >= 0 && name.output < int64_t(found->second.size());
    return fits ? &found->second[size_t(name.output)] : nullptr;
  }

  bool try_call(const Call& call) {
    std::vector<SymbolicTensor> inputs;
    for (const TensorName& name : call.inputs) {
      const SymbolicTensor* tensor = find(name);
      if (tensor == nullptr) return false;
      inputs.push_back(*tensor);
    }
    // Calls of one layer are made in their order, so that they are counted as written.
    if (call.number > 0 && !tensors_.contains({call.layer, call.number - 1})) return false;
    tensors_[{call.layer, call.number}] = layers_.at(call.layer).outputs(inputs);
    return true;
  }

  std::map<std::string, LayerHandle> layers_;
  std::map<std::pair<std::string, int64_t>, std::vector<SymbolicTensor>> tensors_;
  std::vector<Call> calls_;
};

}  // namespace

Json FunctionalModel::config() const {
  Json json;
  json["name"] = name();
  json["trainable"] = trainable();
  json["layers"] = Json::array();
  for (const auto& layer : sublayers()) {
    Json entry = serialize_layer(*layer);
    entry["name"] = layer->name();
    entry["inbound_nodes"] = Json::array();
    for (const auto& node : nodes_) {
      if (node->layer != layer || node->inputs.empty()) continue;
      entry["inbound_nodes"].push_back(call_json(*this, *node));
    }
    move_call_options(entry);
    json["layers"].push_back(std::move(entry));
  }
  json["input_layers"] = ends_json(*this, inputs_);
  json["output_layers"] = ends_json(*this, outputs_);
  return json;
}

LayerHandle functional_from_config(const Json& json, const JsonPath& path, int depth) {
  JsonObject config(json, path);
  const LayerOptions options = take_layer_options(config);
  const Json layers = config.take<Json>("layers");
  const Json inputs = config.take<Json>("input_layers");
  const Json outputs = config.take<Json>("output_layers");
  config.finish();
  if (!layers.is_array()) json_fail(layers, path.key("layers"), "a list of layers");
  GraphReader reader;
  for (size_t i = 0; i < layers.size(); ++i) {
    reader.add_layer(layers[i], path.key("layers").index(i), depth);
  }
  reader.run();
  return Functional(reader.ends(inputs, path.key("input_layers")),
                    reader.ends(outputs, path.key("output_layers")),
                    {.name = options.name, .trainable = options.trainable});
}

}  // namespace tessera::detail
