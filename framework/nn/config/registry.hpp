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

/// "GlorotUniform" as Keras' other spelling, "glorot_uniform"; other texts stay as they are.
std::string snake_case(const std::string& name);

/// The text with small ASCII letters.
std::string lower_case(std::string text);

/// What makes an object from its "config", by name. It takes the keys it knows; a key that it
/// leaves is an error.
template <class Made>
using ConfigFactories = std::map<std::string, std::function<Made(JsonObject&)>>;

/// Makes a class known by its names; one for each class, in its source:
///
///     const Registered registered_dice(loss_factories(), {"dice"}, made_of<Dice, DiceOptions>);
template <class Made>
struct Registered {
  Registered(ConfigFactories<Made>& factories, std::initializer_list<const char*> names,
             typename ConfigFactories<Made>::mapped_type from_config) {
    for (const char* name : names) factories[name] = from_config;
  }
};

/// The names, sorted.
template <class Made>
std::vector<std::string> names_in(const ConfigFactories<Made>& factories) {
  std::vector<std::string> names;
  for (const auto& factory : factories) names.push_back(factory.first);
  return names;
}

/// What the factory of this name, in snake_case or of the class, makes of `config`. Throws
/// ConfigError naming the nearest one; `where` is the kind of thing: "loss".
template <class Made>
Made make_by_name(const std::string& where, const ConfigFactories<Made>& factories,
                  const std::string& name, JsonObject config) {
  auto found = factories.find(snake_case(name));
  // "R2Score" is "r2_score".
  if (found == factories.end()) found = factories.find(lower_case(name));
  if (found == factories.end()) {
    throw ConfigError(where, "a name that Keras knows", in_quotes(name),
                      suggestion(name, names_in(factories)));
  }
  Made made = found->second(config);
  config.finish();
  return made;
}

}  // namespace tessera::detail
