#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Converts a class name to Keras' other spelling: "GlorotUniform" to "glorot_uniform".
std::string snake_case(const std::string& name);

/// Converts ASCII letters to lower case.
std::string lower_case(std::string text);

/// Factories of objects from their "config", by name. A factory takes the keys it knows; any key
/// left over is an error.
template <class Made>
using ConfigFactories = std::map<std::string, std::function<Made(JsonObject&)>>;

/// Registers a class under its names; one for each class, in its source:
///
///     const Registered registered_dice(loss_factories(), {"dice"}, made_of<Dice, DiceOptions>);
template <class Made>
struct Registered {
  Registered(ConfigFactories<Made>& factories, std::initializer_list<const char*> names,
             typename ConfigFactories<Made>::mapped_type from_config) {
    for (const char* name : names) factories[name] = from_config;
  }
};

/// Returns the registered names, sorted.
template <class Made>
std::vector<std::string> names_in(const ConfigFactories<Made>& factories) {
  std::vector<std::string> names;
  for (const auto& factory : factories) names.push_back(factory.first);
  return names;
}

/// Creates an object from `config` by the factory with this name, in snake_case or the class'.
/// Throws ConfigError naming the nearest one; `where` is the kind of object: "loss".
template <class Made>
Made make_by_name(const std::string& where, const ConfigFactories<Made>& factories,
                  const std::string& name, JsonObject config) {
  auto entry = factories.find(snake_case(name));
  // "R2Score" is "r2_score".
  if (entry == factories.end()) entry = factories.find(lower_case(name));
  if (entry == factories.end()) {
    throw ConfigError(where, "the name must be one that Keras knows", in_quotes(name),
                      suggestion(name, names_in(factories)));
  }
  Made made = entry->second(config);
  config.finish();
  return made;
}

}  // namespace tessera::detail
