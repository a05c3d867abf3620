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

/// An object as Keras writes it, {"class_name", "config"}; null for none.
template <class Ref>
Json serialized(const Ref& object) {
  if (!object) return nullptr;
  return {{"class_name", object->class_name()}, {"config", object->config()}};
}

/// An activation as Keras writes it: a function's name, or a layer as layer_json() has it.
Json activation_json(const ActivationHandle& activation);

/// Class name and "config" of an object as Keras writes it; what else Keras puts there ("module",
/// "registered_name", "build_config", "compile_config", a model's "name" and "inbound_nodes") is
/// skipped. Throws ConfigError naming the place.
std::pair<std::string, JsonObject> read_serialized(const Json& json, const JsonPath& path);

/// Runs the factory of an object's class on its "config"; errors name the place. `kind` is what to
/// call it in the error for a name that is not in the table.
template <class Made>
Made made_from(const std::string& kind, const ConfigFactories<Made>& factories,
               const std::string& name, JsonObject config, const JsonPath& path) {
  const auto found = factories.find(name);
  if (found == factories.end()) {
    throw ConfigError(path.text(), "the name is that of a known " + kind, in_quotes(name),
                      suggestion(name, names_in(factories)));
  }
  try {
    Made made = found->second(config);
    config.finish();
    return made;
  } catch (const Error&) {
    rethrow_at(path.text());
  }
}

/// Takes keys that must be absent or null: arguments of Keras that there are none of here. Throws
/// ConfigError naming one that is not.
void take_nulls(JsonObject& config, const std::vector<std::string>& keys);
/// A length: from 1 to 2^31 - 1, so that a product of two cannot overflow.
int64_t take_extent(JsonObject& config, const std::string& key);
/// A list of whole numbers, or a single one for a list of one.
std::vector<int64_t> take_axes(JsonObject& config, const std::string& key);
/// The list as Keras writes it: a list of one as a single number.
Json axes_json(const std::vector<int64_t>& axes);

/// An object from a Keras name or {"class_name", "config"}, all but an initializer also from null;
/// for JsonObject::take and json_as. Throw ConfigError naming the place.
void json_get(const Json& json, const JsonPath& path, InitializerHandle& out);
void json_get(const Json& json, const JsonPath& path, RegularizerHandle& out);
void json_get(const Json& json, const JsonPath& path, ConstraintHandle& out);
void json_get(const Json& json, const JsonPath& path, ActivationHandle& out);

/// What the factory of this name makes with Keras' defaults; the class name finds it too. Throws
/// ConfigError naming the nearest one.
template <class Made>
Made make_default(const std::string& kind, const ConfigFactories<Made>& factories,
                  const std::string& name) {
  static const Json none = Json::object();
  const std::string key = snake_case(name);
  return made_from(kind, factories, factories.contains(key) ? key : lower_case(name),
                   JsonObject(none, JsonPath(kind)), JsonPath(kind));
}

}  // namespace tessera::detail
