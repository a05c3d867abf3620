#include <tessera/framework/nn/config/from_config.hpp>

#include <limits>

#include <tessera/framework/nn/layer_registry.hpp>

namespace tessera::detail {
namespace {

template <class Ref>
void get_object(const Json& json, const JsonPath& path, const std::string& kind,
                const ConfigFactories<Ref>& factories, Ref& out) {
  if (json.is_string()) {
    try {
      out = make_default(kind, factories, json.get_ref<const std::string&>());
      return;
    } catch (const Error&) {
      rethrow_at(path.text());
    }
  }
  if (!json.is_object()) json_fail(json, path, "a name or an object with \"class_name\"");
  auto [name, config] = read_serialized(json, path);
  const std::string key = snake_case(name);
  const std::string& registered_name = factories.contains(key) ? key : name;
  out = made_from(kind, factories, registered_name, std::move(config), path);
}

}  // namespace

std::pair<std::string, JsonObject> read_serialized(const Json& json, const JsonPath& path) {
  JsonObject object(json, path.from_python());
  auto name = object.take<std::string>("class_name");
  JsonObject config = object.take_object("config");
  for (const char* skipped : {"module", "registered_name", "build_config", "compile_config",
                              "shared_object_id", "name", "inbound_nodes"}) {
    object.take_optional<Json>(skipped);
  }
  object.finish();
  return {std::move(name), std::move(config)};
}

Json activation_json(const ActivationHandle& activation) {
  for (const OwnActivation& own : own_activations) {
    if (activation.name() != own.name) continue;
    // Keras looks up functions that are not its own in this form only.
    return {{"module", "builtins"},
            {"class_name", "function"},
            {"config", own.name},
            {"registered_name", "function"}};
  }
  return activation.layer() ? layer_json(*activation.layer()) : Json(activation.name());
}

void take_nulls(JsonObject& config, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (const auto value = config.take_optional<Json>(key)) {
      json_fail(*value, config.path().key(key), "null: this option is not supported");
    }
  }
}

int64_t take_extent(JsonObject& config, const std::string& key) {
  const auto value = config.take<int64_t>(key);
  if (value >= 1 && value <= std::numeric_limits<int32_t>::max()) return value;
  json_fail(value, config.path().key(key), "an integer from 1 to 2147483647");
}

std::vector<int64_t> take_axes(JsonObject& config, const std::string& key) {
  const auto value = config.take<Json>(key);
  const JsonPath path = config.path().key(key);
  if (value.is_array()) return json_as<std::vector<int64_t>>(value, path);
  return {json_as<int64_t>(value, path)};
}

Json axes_json(const std::vector<int64_t>& axes) {
  return axes.size() == 1 ? Json(axes[0]) : Json(axes);
}

void json_get(const Json& json, const JsonPath& path, InitializerHandle& out) {
  get_object(json, path, "initializer", initializer_factories(), out);
}

void json_get(const Json& json, const JsonPath& path, RegularizerHandle& out) {
  out = {};
  if (!json.is_null()) get_object(json, path, "regularizer", regularizer_factories(), out);
}

void json_get(const Json& json, const JsonPath& path, ConstraintHandle& out) {
  out = {};
  if (!json.is_null()) get_object(json, path, "constraint", constraint_factories(), out);
}

void json_get(const Json& json, const JsonPath& path, ActivationHandle& out) {
  out = {};
  if (json.is_null()) return;
  if (json.is_object() && json.value("class_name", Json()) != "function") {
    out = ActivationHandle(layer_from_config(json, path));
    return;
  }
  try {
    const bool object = json.is_object() && json.contains("config");
    out = ActivationHandle(object ? json_as<std::string>(json["config"], path.key("config"))
                                  : json_as<std::string>(json, path));
  } catch (const Error&) {
    rethrow_at(path.text());
  }
}

}  // namespace tessera::detail
