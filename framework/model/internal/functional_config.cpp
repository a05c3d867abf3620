#include <tessera/framework/model/internal/functional_config.hpp>

#include <map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/graph/internal/call_arguments.hpp>
#include <tessera/framework/graph/internal/graph_reader.hpp>
#include <tessera/framework/graph/internal/graph_writer.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/nn/internal/reversed_call.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera::detail {
namespace {

/// Returns the keys of a Functional model's inputs; empty for other layers.
std::vector<std::string> keys_of_inputs(const Layer& layer) {
  const auto* const model = dynamic_cast<const FunctionalModel*>(&layer);
  return model ? model->inputs().keys : std::vector<std::string>();
}

/// Moves call options from the layer's config to its calls.
void move_call_options(Json& json) {
  for (const char* option : call_options) {
    if (!json["config"].contains(option)) continue;
    const bool is_set = json["config"][option] == true;
    json["config"].erase(option);
    if (!is_set) continue;
    for (Json& call : json["inbound_nodes"]) call["kwargs"][option] = true;
  }
}

}  // namespace

Json FunctionalModel::config() const {
  Json json = Json::object();
  MaskFlow masks;
  for (const auto& node : nodes_) masks.add(*node);
  std::map<const Layer*, int64_t> calls;
  std::map<const Node*, int64_t> call_index;
  for (const auto& node : nodes_) {
    call_index[node.get()] = calls[&layer_in_config(*node->layer)]++;
  }
  const GraphWriter writer(call_index, keys_of_inputs);
  json["name"] = name();
  json["trainable"] = trainable();
  json["layers"] = Json::array();
  for (const auto& layer : sublayers()) {
    if (is_reversed(*layer)) continue;
    Json entry = serialize_layer(*layer);
    entry["name"] = layer->name();
    entry["inbound_nodes"] = Json::array();
    for (const auto& node : nodes_) {
      if (&layer_in_config(*node->layer) != layer.get() || node->inputs.empty()) continue;
      entry["inbound_nodes"].push_back(writer.call(*node, masks));
    }
    move_call_options(entry);
    json["layers"].push_back(std::move(entry));
  }
  json["input_layers"] = writer.ends(inputs_);
  json["output_layers"] = writer.ends(outputs_);
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
