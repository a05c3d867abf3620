#include <tessera/framework/graph/internal/tensorflow_operation.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/graph/internal/legacy_text.hpp>
#include <tessera/framework/graph/operations/operation.hpp>

namespace tessera::detail {
namespace {

/// Keras 3's operation for a function of TensorFlow.
struct KerasOperation {
  std::string class_name;
  std::vector<std::string> tensors;  ///< TensorFlow's names of the positional arguments
  /// Options: TensorFlow's name and Keras'.
  std::vector<std::pair<std::string, std::string>> options = {};
  Json defaults = Json::object();  ///< options whose default differs
};

using Functions = std::map<std::string, KerasOperation>;

void add_elementwise(Functions& all) {
  for (const auto& [name, class_name] :
       std::vector<std::pair<std::string, std::string>>{{"__operators__.add", "Add"},
                                                        {"math.add", "Add"},
                                                        {"math.subtract", "Subtract"},
                                                        {"math.multiply", "Multiply"},
                                                        {"math.divide", "TrueDivide"},
                                                        {"math.truediv", "TrueDivide"},
                                                        {"math.floordiv", "FloorDivide"},
                                                        {"math.floormod", "Mod"},
                                                        {"math.pow", "Power"},
                                                        {"math.maximum", "Maximum"},
                                                        {"math.minimum", "Minimum"},
                                                        {"math.equal", "Equal"},
                                                        {"math.not_equal", "NotEqual"},
                                                        {"math.less", "Less"},
                                                        {"math.less_equal", "LessEqual"},
                                                        {"math.greater", "Greater"},
                                                        {"math.greater_equal", "GreaterEqual"}}) {
    all[name] = {class_name, {"x", "y"}};
  }
  for (const auto& [name, class_name] :
       std::vector<std::pair<std::string, std::string>>{{"abs", "Absolute"},
                                                        {"negative", "Negative"},
                                                        {"sign", "Sign"},
                                                        {"square", "Square"},
                                                        {"sqrt", "Sqrt"},
                                                        {"exp", "Exp"},
                                                        {"expm1", "Expm1"},
                                                        {"log", "Log"},
                                                        {"log1p", "Log1p"},
                                                        {"reciprocal", "Reciprocal"},
                                                        {"sin", "Sin"},
                                                        {"cos", "Cos"},
                                                        {"tanh", "Tanh"},
                                                        {"floor", "Floor"},
                                                        {"ceil", "Ceil"},
                                                        {"round", "Round"},
                                                        {"rsqrt", "Rsqrt"},
                                                        {"erf", "Erf"}}) {
    all["math." + name] = {class_name, {"x"}};
  }
  all["where"] = {"Where", {"condition", "x", "y"}};
  all["clip_by_value"] = {
      "Clip", {"t"}, {{"clip_value_min", "x_min"}, {"clip_value_max", "x_max"}}};
  all["cast"] = {"Cast", {"x"}, {{"dtype", "dtype"}}};
}

void add_activations(Functions& all) {
  for (const auto& [name, class_name] :
       std::vector<std::pair<std::string, std::string>>{{"relu", "Relu"},
                                                        {"relu6", "Relu6"},
                                                        {"elu", "Elu"},
                                                        {"selu", "Selu"},
                                                        {"softplus", "Softplus"},
                                                        {"softsign", "Softsign"},
                                                        {"silu", "Silu"},
                                                        {"swish", "Silu"}}) {
    all["nn." + name] = all["math." + name] = {class_name, {"features"}};
  }
  all["math.sigmoid"] = all["nn.sigmoid"] = {"Sigmoid", {"x"}};
  all["math.log_sigmoid"] = {"LogSigmoid", {"x"}};
  all["nn.tanh"] = all["math.tanh"];
  all["nn.leaky_relu"] = {"LeakyRelu", {"features"}, {{"alpha", "negative_slope"}}};
  all["nn.gelu"] = {
      "Gelu", {"features"}, {{"approximate", "approximate"}}, {{"approximate", false}}};
  all["nn.softmax"] = all["math.softmax"] = {"Softmax", {"logits"}, {{"axis", "axis"}}};
  all["nn.log_softmax"] = all["math.log_softmax"] = {"LogSoftmax", {"logits"}, {{"axis", "axis"}}};
}

void add_others(Functions& all) {
  for (const auto& [name, class_name] :
       std::vector<std::pair<std::string, std::string>>{{"sum", "Sum"},
                                                        {"mean", "Mean"},
                                                        {"max", "Max"},
                                                        {"min", "Min"},
                                                        {"prod", "Prod"},
                                                        {"std", "Std"},
                                                        {"variance", "Var"}}) {
    all["math.reduce_" + name] = {
        class_name, {"input_tensor"}, {{"axis", "axis"}, {"keepdims", "keepdims"}}};
  }
  all["reshape"] = {"Reshape", {"tensor"}, {{"shape", "newshape"}}};
  all["transpose"] = {"Transpose", {"a"}, {{"perm", "axes"}}};
  all["expand_dims"] = {"ExpandDims", {"input"}, {{"axis", "axis"}}};
  all["squeeze"] = {"Squeeze", {"input"}, {{"axis", "axis"}}};
  all["concat"] = {"Concatenate", {"values"}, {{"axis", "axis"}}};
  all["stack"] = {"Stack", {"values"}, {{"axis", "axis"}}};
  all["tile"] = {"Tile", {"input"}, {{"multiples", "repeats"}}};
  all["linalg.matmul"] = {"Matmul", {"a", "b"}};
  all["__operators__.getitem"] = {"GetItem", {"tensor", "slice_spec"}};
}

const Functions& functions() {
  static const Functions table = [] {
    Functions all;
    add_elementwise(all);
    add_activations(all);
    add_others(all);
    return all;
  }();
  return table;
}

std::string function_in(const Json& layer) {
  const std::string kind = text_at(layer, "class_name");
  if (kind != "TFOpLambda" && kind != "SlicingOpLambda") return "";
  return layer.contains("config") ? text_at(layer["config"], "function") : "";
}

/// Returns a slice of Keras 2's JSON, or a list of them and of indices, in Keras 3's format.
Json keras_3_slices(const Json& json) {
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& one : json) list.push_back(keras_3_slices(one));
    return list;
  }
  if (!json.is_object() || !json.contains("step")) return json;
  return {{"class_name", "__slice__"}, {"config", json}};
}

/// Returns a tensor argument, in which a list of numbers is a constant.
Json tensor_argument(const Json& json) {
  const Json* first = &json;
  while (first->is_array() && !first->empty()) first = &(*first)[0];
  if (!json.is_array() || !first->is_number()) return json;
  return {{"class_name", "__tensor__"}, {"config", {{"value", json}, {"dtype", "float32"}}}};
}

/// Moves a call's options into the operation's configuration and returns its positional arguments.
Json keras_operation_call(const Json& call, const KerasOperation& operation, Json& config,
                          const JsonPath& path) {
  Json args = Json::array();
  std::map<std::string, Json> given;
  for (const auto& [key, value] : call.at("kwargs").items()) {
    // TensorFlow writes the arguments that are not set; flags that are not set change nothing.
    if (key != "name" && !value.is_null() && value != false) given.emplace(key, value);
  }
  given[operation.tensors[0]] = call.at("args")[0];
  for (const std::string& name : operation.tensors) {
    const auto found = given.extract(name);
    if (found.empty()) json_fail(call["kwargs"], path, "an object with \"" + name + "\"");
    args.push_back(name == "slice_spec" ? keras_3_slices(found.mapped())
                                        : tensor_argument(found.mapped()));
  }
  for (const auto& [name, keras_name] : operation.options) {
    if (const auto found = given.extract(name); !found.empty()) config[keras_name] = found.mapped();
  }
  if (!given.empty()) {
    const auto& [key, value] = *given.begin();
    json_fail(value, path.key(key), "absent: the operation has no such argument in Keras 3");
  }
  return {{"args", args}, {"kwargs", Json::object()}};
}

}  // namespace

bool has_keras_operation(const Json& layer) { return functions().contains(function_in(layer)); }

Json to_keras_operation(const Json& layer, const JsonPath& path) {
  const KerasOperation& operation = functions().at(function_in(layer));
  const Json name = layer.contains("name") ? layer["name"] : Json();
  Json config = operation.defaults, calls = Json::array();
  config["name"] = name;
  const Json nodes = layer.contains("inbound_nodes") ? layer["inbound_nodes"] : Json::array();
  for (size_t i = 0; nodes.is_array() && i < nodes.size(); ++i) {
    const JsonPath at = path.key("inbound_nodes").index(i);
    const bool call = nodes[i].is_object() && nodes[i].contains("args") &&
                      nodes[i]["args"].is_array() && !nodes[i]["args"].empty() &&
                      nodes[i].contains("kwargs") && nodes[i]["kwargs"].is_object();
    if (!call) json_fail(nodes[i], at, "a call with its tensors");
    calls.push_back(keras_operation_call(nodes[i], operation, config, at));
  }
  return {{"module", find_operation(operation.class_name)->module},
          {"class_name", operation.class_name},
          {"config", config},
          {"registered_name", operation.class_name},
          {"name", name},
          {"inbound_nodes", calls}};
}

}  // namespace tessera::detail
