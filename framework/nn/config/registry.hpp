#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>

namespace tessera {

/// "GlorotUniform" as Keras' other spelling, "glorot_uniform"; other texts stay as they are.
std::string snake_case(const std::string& name);

/// The text with small ASCII letters.
std::string lower_case(std::string text);

/// Factories by Keras' names, in snake_case; the class name finds them too.
template <class Made, class... Args>
using Factories = std::map<std::string, std::function<Made(const Args&...)>>;

/// The names, sorted.
template <class Made, class... Args>
std::vector<std::string> names_in(const Factories<Made, Args...>& factories) {
  std::vector<std::string> names;
  for (const auto& factory : factories) names.push_back(factory.first);
  return names;
}

/// What the factory of this name makes. Throws ConfigError naming the nearest one; `where` is the
/// kind of thing: "initializer".
template <class Made, class... Args>
Made make_by_name(const std::string& where, const Factories<Made, Args...>& factories,
                  const std::string& name, const Args&... args) {
  auto found = factories.find(snake_case(name));
  // "AdamW" is "adamw".
  if (found == factories.end()) found = factories.find(lower_case(name));
  if (found != factories.end()) return found->second(args...);
  throw ConfigError(where, "a name that Keras knows", in_quotes(name),
                    suggestion(name, names_in(factories)));
}

}  // namespace tessera
