#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/initializers/constraint.hpp>
#include <tessera/framework/nn/initializers/initializer.hpp>
#include <tessera/framework/nn/initializers/regularizer.hpp>

namespace tessera::detail {

/// Serializes an object as Keras does, {"class_name", "config"}; an empty handle becomes null.
template <class Ref>
Json serialized(const Ref& object) {
  if (!object) return nullptr;
  return {{"class_name", object->class_name()}, {"config", object->config()}};
}

/// Serializes an activation as Keras does: the name of a function of Keras', an object with the
/// name of another one, or a layer by layer_json().
Json activation_json(const ActivationHandle& activation);

/// Reads class name and "config" of an object that Keras serialized. Skips Keras' other keys
/// ("module", "registered_name", "build_config", "compile_config", a model's "name" and
/// "inbound_nodes"). Values below "config" may be written as in Python. Throws ConfigError naming
/// the JSON path.
std::pair<std::string, JsonObject> read_serialized(const Json& json, const JsonPath& path);

/// Creates an object by running the factory `name` on its "config"; errors name the JSON path.
/// `kind` is the noun for the object in errors: "loss".
template <class Made>
Made made_from(const std::string& kind, const ConfigFactories<Made>& factories,
               const std::string& name, JsonObject config, const JsonPath& path) {
  const auto entry = factories.find(name);
  if (entry == factories.end()) {
    throw ConfigError(path.text(), "the name is that of a known " + kind, in_quotes(name),
                      suggestion(name, names_in(factories)));
  }
  try {
    Made made = entry->second(config);
    config.finish();
    return made;
  } catch (const Error&) {
    rethrow_at(path.text());
  }
}

/// Takes Keras options that are not supported and so must be absent or null. Throws ConfigError
/// naming one that is not.
void take_nulls(JsonObject& config, const std::vector<std::string>& keys);
/// Takes an extent: 1 to 2^31 - 1, so that a product of two cannot overflow.
int64_t take_extent(JsonObject& config, const std::string& key);
/// Takes a list of integers; a single integer is a list of one.
std::vector<int64_t> take_axes(JsonObject& config, const std::string& key);
/// Serializes the list as Keras does: a list of one as a single integer.
Json axes_json(const std::vector<int64_t>& axes);

/// Reads an object from a Keras name or {"class_name", "config"}; all but initializers also from
/// null. For JsonObject::take and json_as. Throws ConfigError naming the JSON path.
void json_get(const Json& json, const JsonPath& path, InitializerHandle& out);
void json_get(const Json& json, const JsonPath& path, RegularizerHandle& out);
void json_get(const Json& json, const JsonPath& path, ConstraintHandle& out);
void json_get(const Json& json, const JsonPath& path, ActivationHandle& out);

/// Creates the object with this Keras name or class name, with Keras' defaults. Throws ConfigError
/// naming the nearest one.
template <class Made>
Made make_default(const std::string& kind, const ConfigFactories<Made>& factories,
                  const std::string& name) {
  static const Json none = Json::object();
  const std::string key = snake_case(name);
  return made_from(kind, factories, factories.contains(key) ? key : lower_case(name),
                   JsonObject(none, JsonPath(kind)), JsonPath(kind));
}

}  // namespace tessera::detail
