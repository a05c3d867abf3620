#include <tessera/framework/graph/internal/tensor_name.hpp>

namespace tessera::detail {

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

}  // namespace tessera::detail
