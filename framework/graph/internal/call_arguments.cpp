#include <tessera/framework/graph/internal/call_arguments.hpp>

#include <map>
#include <set>

#include <tessera/framework/graph/operations/operation.hpp>

namespace tessera::detail {

std::vector<std::string> further_arguments(const std::string& layer) {
  if (takes_query(layer)) {
    return {"value", "key", "query_mask", "value_mask", "key_mask", "attention_mask"};
  }
  if (is_recurrent(layer)) return {"initial_state", "mask"};
  if (layer == "CategoryEncoding") return {"count_weights"};
  if (layer == "ReversibleEmbedding") return {"reverse"};
  if (layer == "GlobalAveragePooling1D" || layer == "Softmax") return {"mask"};
  return {};
}

std::string first_argument(const std::string& layer) {
  if (takes_query(layer)) return "query";
  if (layer == "RMSNormalization") return "x";
  return is_recurrent(layer) ? "sequences" : "inputs";
}

Json in_key_order(const Json& json) {
  if (!json.is_object() || json.contains("class_name")) return json;
  const auto by_key = json.get<std::map<std::string, Json>>();
  Json list = Json::array();
  for (const auto& [key, value] : by_key) list.push_back(value);
  return list;
}

void add_inputs(std::vector<TensorName>& inputs, const Json& unordered, const JsonPath& path) {
  const Json json = in_key_order(unordered);
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) add_inputs(inputs, json[i], path.index(i));
  } else if (is_tensor(json)) {
    inputs.push_back(name_of_tensor(json, path));
  } else {
    json_fail(json, path, "a tensor of the model");
  }
}

Json with_placeholders(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path) {
  if (is_tensor(json)) {
    inputs.push_back(name_of_tensor(json, path));
    return tensor_placeholder(inputs.size() - 1);
  }
  if (!json.is_array()) return json;
  Json list = Json::array();
  for (size_t i = 0; i < json.size(); ++i) {
    list.push_back(with_placeholders(inputs, json[i], path.index(i)));
  }
  return list;
}

EndNames end_names(const Json& json, const JsonPath& path) {
  EndNames ends;
  const auto add = [&](const Json& one, const JsonPath& at) {
    ends.names.push_back(tensor_name(one, at));
    ends.paths.push_back(at);
  };
  if (json.is_object()) {
    for (const auto& [key, one] : json.get<std::map<std::string, Json>>()) {
      ends.keys.push_back(key);
      add(one, path.key(key));
    }
  } else if (!json.is_array()) {
    json_fail(json, path, "a list or an object of tensors");
  } else if (!json.empty() && json[0].is_string()) {
    add(json, path);
  } else {
    for (size_t i = 0; i < json.size(); ++i) add(json[i], path.index(i));
  }
  return ends;
}

bool takes_query(const std::string& class_name) {
  return class_name == "MultiHeadAttention" || class_name == "GroupQueryAttention";
}

bool is_recurrent(const std::string& class_name) {
  static const std::set<std::string> known = {
      "Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "GRU", "LSTM", "RNN", "SimpleRNN"};
  return known.contains(class_name);
}

}  // namespace tessera::detail
