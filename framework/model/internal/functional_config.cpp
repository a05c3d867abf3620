#include <tessera/framework/model/internal/functional_config.hpp>

#include <algorithm>
#include <set>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/dtype_name.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/internal/graph_reader.hpp>
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
          {"config",
           {{"shape", shape_json(tensor.shape())},
            {"dtype", dtype_name(tensor.dtype())},
            {"keras_history", history_json(model, tensor)}}}};
}

/// The arguments of an operation with tensors at their places.
Json with_tensors(const FunctionalModel& model, const Node& node, const Json& json) {
  if (const auto number = tensor_at(json)) return tensor_json(model, node.inputs[*number]);
  if (!json.is_array()) return json;
  Json list = Json::array();
  for (const Json& one : json) list.push_back(with_tensors(model, node, one));
  return list;
}

Json operation_call_json(const FunctionalModel& model, const Node& node) {
  const OperationArguments& given = static_cast<const OperationLayer&>(*node.layer).arguments();
  Json kwargs = Json::object();
  for (const auto& [key, value] : given.kwargs.items()) {
    kwargs[key] = with_tensors(model, node, value);
  }
  return {{"args", with_tensors(model, node, given.args)}, {"kwargs", kwargs}};
}

/// Under the keys of a model whose inputs have some, else as they are.
Json keyed(const Layer& layer, const Json& values) {
  const auto* const model = dynamic_cast<const FunctionalModel*>(&layer);
  if (!model || model->inputs().keys.empty()) return values;
  Json object = Json::object();
  for (size_t i = 0; i < values.size(); ++i) object[model->inputs().keys[i]] = values[i];
  return object;
}

/// As Keras' layer takes its inputs: as a list, one by one, or with first states beside them.
/// Masks are one argument, but where there is a query.
Json call_json(const FunctionalModel& model, const Node& node, const MaskFlow& flow) {
  if (node.layer->is_operation()) return operation_call_json(model, node);
  Json inputs = Json::array(), masks = Json::array();
  for (size_t i = 0; i < node.arguments(); ++i) {
    inputs.push_back(tensor_json(model, node.inputs[i]));
    masks.push_back(nullptr);
  }
  for (size_t i = 0; i < node.masked.size(); ++i) {
    masks[node.masked[i]] = tensor_json(model, node.inputs[node.arguments() + i]);
  }
  const std::string layer = node.layer->class_name();
  Json args = Json::array(), kwargs = Json::object();
  if (takes_query(layer)) {
    if (inputs.size() > 3) kwargs["attention_mask"] = inputs[3];
    for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
      args.push_back(inputs[i]);
      if (!masks[i].is_null()) kwargs[attention_masks[i]] = masks[i];
    }
    return {{"args", args}, {"kwargs", kwargs}};
  }
  const bool states = inputs.size() > 1 && is_recurrent(layer);
  if (states) kwargs["initial_state"] = Json(inputs.begin() + 1, inputs.end());
  const bool weights = inputs.size() > 1 && layer == "CategoryEncoding";
  if (weights) kwargs["count_weights"] = inputs[1];
  const Json all = keyed(*node.layer, inputs);
  const bool one = states || weights || (inputs.size() == 1 && all.is_array());
  args.push_back(one ? inputs[0] : all);
  if (node.masked.empty()) return {{"args", args}, {"kwargs", kwargs}};
  for (size_t i = 0; i < masks.size() && !one; ++i) {
    if (!masks[i].is_null() || flow.sources(node.inputs[i]).empty()) continue;
    throw ConfigError(layer + " " + node.layer->path(),
                      "in JSON a call has masks for all of its inputs or for none",
                      str("input ", i, " with a mask of its own alone"), "give it one with_mask()");
  }
  kwargs["mask"] = one ? masks[0] : keyed(*node.layer, masks);
  return {{"args", args}, {"kwargs", kwargs}};
}

/// A list, or an object where there are keys. Here alone Keras counts the calls of a Functional
/// model from 1.
Json ends_json(const FunctionalModel& model, const GraphEnds& ends) {
  Json json = ends.keys.empty() ? Json::array() : Json::object();
  for (size_t i = 0; i < ends.tensors.size(); ++i) {
    const SymbolicTensor& tensor = ends.tensors[i];
    Json history = history_json(model, tensor);
    if (dynamic_cast<const FunctionalModel*>(tensor.node()->layer.get())) {
      history[1] = model.call_index(*tensor.node()) + 1;
    }
    if (ends.keys.empty()) {
      json.push_back(std::move(history));
    } else {
      json[ends.keys[i]] = std::move(history);
    }
  }
  return json;
}

/// From the layer to its calls.
void move_call_options(Json& json) {
  for (const char* option : call_options) {
    if (!json["config"].erase(option)) continue;
    for (Json& call : json["inbound_nodes"]) call["kwargs"][option] = true;
  }
}

}  // namespace

TensorName tensor_name(const Json& json, const JsonPath& path) {
  if (!json.is_array() || json.size() < 3) json_fail(json, path, "[layer, call, output]");
  return {json_as<std::string>(json[0], path.index(0)), json_as<int64_t>(json[1], path.index(1)),
          json_as<int64_t>(json[2], path.index(2))};
}

bool is_tensor(const Json& json) {
  return json.is_object() && json.contains("class_name") &&
         json["class_name"] == "__keras_tensor__";
}

TensorName name_of_tensor(const Json& json, const JsonPath& path) {
  JsonObject tensor(json, path);
  const Json config = tensor.take<Json>("config");
  JsonObject inner(config, path.key("config"));
  const Json history = inner.take<Json>("keras_history");
  return tensor_name(history, path.key("config").key("keras_history"));
}

bool takes_query(const std::string& class_name) {
  return class_name == "MultiHeadAttention" || class_name == "GroupQueryAttention";
}

bool is_recurrent(const std::string& class_name) {
  static const std::set<std::string> known = {"Bidirectional", "GRU", "LSTM", "SimpleRNN"};
  return known.contains(class_name);
}

Json FunctionalModel::config() const {
  Json json;
  MaskFlow masks;
  for (const auto& node : nodes_) masks.add(*node);
  json["name"] = name();
  json["trainable"] = trainable();
  json["layers"] = Json::array();
  for (const auto& layer : sublayers()) {
    Json entry = serialize_layer(*layer);
    entry["name"] = layer->name();
    entry["inbound_nodes"] = Json::array();
    for (const auto& node : nodes_) {
      if (node->layer != layer || node->inputs.empty()) continue;
      entry["inbound_nodes"].push_back(call_json(*this, *node, masks));
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
  const EndNames begins = end_names(inputs, path.key("input_layers"));
  const EndNames ends = end_names(outputs, path.key("output_layers"));
  reader.run(ends);
  return Functional(reader.ends(begins), reader.ends(ends),
                    {.name = options.name, .trainable = options.trainable, .dtype = options.dtype});
}

}  // namespace tessera::detail
