#include <tessera/framework/graph/internal/graph_writer.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/graph/internal/call_arguments.hpp>
#include <tessera/framework/graph/operations/operation_layer.hpp>
#include <tessera/framework/nn/internal/nested_states.hpp>
#include <tessera/framework/nn/internal/reversed_call.hpp>
#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera::detail {
namespace {

Json shape_json(const Shape& shape) {
  Json json = Json::array();
  for (int64_t extent : shape) json.push_back(extent < 0 ? Json() : Json(extent));
  return json;
}

/// Returns the initial states as Keras nests them: those of stacked cells by cell, where the only
/// state of a cell is no list.
Json nested_states(const Layer& layer, const Json& states) {
  const auto* const nested = dynamic_cast<const HasNestedStates*>(&layer);
  const std::vector<size_t> counts = nested ? nested->states_by_cell() : std::vector<size_t>();
  if (counts.empty()) return states;
  Json list = Json::array();
  auto state = states.begin();
  for (const size_t count : counts) {
    const auto end = state + static_cast<int64_t>(count);
    list.push_back(count == 1 ? *state : Json(std::vector<Json>(state, end)));
    state = end;
  }
  return list;
}

}  // namespace

/// Returns [layer, call, output], Keras' reference to a tensor.
Json GraphWriter::history_json(const SymbolicTensor& tensor) const {
  const Node& node = *tensor.node();
  return {layer_in_config(*node.layer).name(), call_index_.at(&node), tensor.index()};
}

Json GraphWriter::tensor_json(const SymbolicTensor& tensor) const {
  return {{"class_name", "__keras_tensor__"},
          {"config",
           {{"shape", shape_json(tensor.shape())},
            {"dtype", dtype_name(tensor.dtype())},
            {"keras_history", history_json(tensor)}}}};
}

/// Replaces the placeholders in an operation's arguments by tensors.
Json GraphWriter::with_tensors(const Node& node, const Json& json) const {
  if (const auto number = tensor_at(json)) return tensor_json(node.inputs[*number]);
  if (!json.is_array()) return json;
  Json list = Json::array();
  for (const Json& one : json) list.push_back(with_tensors(node, one));
  return list;
}

Json GraphWriter::operation_call_json(const Node& node) const {
  const OperationArguments& arguments = static_cast<const OperationLayer&>(*node.layer).arguments();
  Json kwargs = Json::object();
  for (const auto& [key, value] : arguments.kwargs.items()) {
    kwargs[key] = with_tensors(node, value);
  }
  return {{"args", with_tensors(node, arguments.args)}, {"kwargs", kwargs}};
}

/// Returns the values by the keys of the model's inputs; unchanged if there are none.
Json GraphWriter::keyed(const Layer& layer, const Json& values) const {
  const std::vector<std::string> keys = input_keys_(layer);
  if (keys.empty()) return values;
  Json object = Json::object();
  for (size_t i = 0; i < values.size(); ++i) object[keys[i]] = values[i];
  return object;
}

Json GraphWriter::call(const Node& node, const MaskFlow& flow) const {
  if (node.layer->is_operation()) return operation_call_json(node);
  Json inputs = Json::array(), masks = Json::array();
  for (size_t i = 0; i < node.arguments(); ++i) {
    inputs.push_back(tensor_json(node.inputs[i]));
    masks.push_back(nullptr);
  }
  for (size_t i = 0; i < node.masked.size(); ++i) {
    masks[node.masked[i]] = tensor_json(node.inputs[node.arguments() + i]);
  }
  const std::string layer = node.layer->class_name();
  Json args = Json::array(), kwargs = Json::object();
  if (is_reversed(*node.layer)) kwargs["reverse"] = true;
  if (takes_query(layer)) {
    if (inputs.size() > 3) kwargs["attention_mask"] = inputs[3];
    for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
      args.push_back(inputs[i]);
      if (!masks[i].is_null()) kwargs[attention_masks[i]] = masks[i];
    }
    return {{"args", args}, {"kwargs", kwargs}};
  }
  const bool states = inputs.size() > 1 && is_recurrent(layer);
  if (states) {
    kwargs["initial_state"] = nested_states(*node.layer, Json(inputs.begin() + 1, inputs.end()));
  }
  const bool weights = inputs.size() > 1 && layer == "CategoryEncoding";
  if (weights) kwargs["count_weights"] = inputs[1];
  const Json all = keyed(*node.layer, inputs);
  const bool one = states || weights || (inputs.size() == 1 && all.is_array());
  args.push_back(one ? inputs[0] : all);
  if (node.masked.empty()) return {{"args", args}, {"kwargs", kwargs}};
  for (size_t i = 0; i < masks.size() && !one; ++i) {
    if (!masks[i].is_null() || flow.sources(node.inputs[i]).empty()) continue;
    throw ConfigError(layer + " " + node.layer->path(),
                      "in JSON a call must have masks for all of its inputs or for none",
                      str("input ", i, " with only its own mask"),
                      "set that mask explicitly by with_mask()");
  }
  kwargs["mask"] = one ? masks[0] : keyed(*node.layer, masks);
  return {{"args", args}, {"kwargs", kwargs}};
}

Json GraphWriter::ends(const SymbolicTensors& ends) const {
  Json json = ends.keys.empty() ? Json::array() : Json::object();
  for (size_t i = 0; i < ends.tensors.size(); ++i) {
    const SymbolicTensor& tensor = ends.tensors[i];
    Json history = history_json(tensor);
    if (is_functional(*tensor.node()->layer)) history[1] = call_index_.at(tensor.node().get()) + 1;
    if (ends.keys.empty()) {
      json.push_back(std::move(history));
    } else {
      json[ends.keys[i]] = std::move(history);
    }
  }
  return json;
}

}  // namespace tessera::detail
