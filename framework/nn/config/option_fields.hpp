#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/config/registry.hpp>

/// Options as Keras' configurations, and back. A struct of options takes part by a function
/// fields(options, visit) beside it, which calls visit(key, member) for each of them.
namespace tessera::detail {

/// An enumeration with names_of(E): Keras' texts, in the order of the enumerators.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  names_of(value)[0];
};

/// The option as Keras writes it: an activation as activation_json() has it, another object as
/// {"class_name", "config"}, an empty list as None.
template <class T>
Json option_json(const T& value) {
  if constexpr (NamedEnum<T>) {
    return names_of(value)[static_cast<size_t>(value)];
  } else if constexpr (std::is_same_v<T, ActivationHandle>) {
    return activation_json(value);
  } else if constexpr (requires { value->class_name(); }) {
    return serialized(value);
  } else if constexpr (requires { value.json(); }) {
    return value.json();
  } else {
    return value;
  }
}
template <class T>
Json option_json(const std::optional<T>& value) {
  return value ? option_json(*value) : Json(nullptr);
}
template <class T>
Json option_json(const std::vector<T>& values) {
  return values.empty() ? Json(nullptr) : Json(values);
}

/// One of Keras' texts in large or small letters; None is the text "none".
template <NamedEnum E>
void json_get(const Json& json, const JsonPath& path, E& out) {
  const std::string text = json.is_null() ? "none" : json_as<std::string>(json, path);
  std::vector<std::string> known;
  for (const std::string name : names_of(out)) {
    if (lower_case(name) == lower_case(text)) {
      out = static_cast<E>(known.size());
      return;
    }
    known.push_back(name);
  }
  throw ConfigError(path.text(), "one of " + quoted_list(known), in_quotes(text),
                    suggestion(text, known));
}

/// Sets `out` if the key is there and not None. Throws ConfigError naming the key.
template <class T>
void read_option(JsonObject& given, const std::string& key, T& out) {
  if (const auto value = given.take_optional<T>(key)) out = *value;
}
/// None is a value too.
template <class T>
void read_option(JsonObject& given, const std::string& key, std::optional<T>& out) {
  const auto value = given.take_optional<T>(key);
  if (given.has(key)) out = value;
}
/// A list, or one number.
template <class T>
requires std::is_arithmetic_v<T>
void read_option(JsonObject& given, const std::string& key, std::vector<T>& out) {
  const auto value = given.take_optional<Json>(key);
  if (!value) return;
  const JsonPath path = given.path().key(key);
  if (value->is_number()) {
    out = {json_as<T>(*value, path)};
  } else {
    json_get(*value, path, out);
  }
}
template <NamedEnum E>
void read_option(JsonObject& given, const std::string& key, E& out) {
  const bool there = given.take_optional<Json>(key) || given.has(key);
  if (there) out = given.take<E>(key);
}
/// An option of Keras' that there is none of here.
inline void read_option(JsonObject& given, const std::string& key, std::nullptr_t&) {
  take_nulls(given, {key});
}

/// Keras' configuration of options.
template <class Options>
Json config_of(Options options) {
  Json config = Json::object();
  fields(options, [&](const char* key, auto& value) { config[key] = option_json(value); });
  return config;
}

/// config_of, an empty name replaced by that of the class in snake_case.
template <class Options>
Json named_config(const char* class_name, Options options) {
  if (options.name.empty()) options.name = snake_case(class_name);
  return config_of(std::move(options));
}

/// Takes options from a configuration; what is absent stays, and what is null where null is no
/// value. Throws ConfigError for a value of another type.
template <class Options>
void read_fields(JsonObject& given, Options& options) {
  fields(options, [&](const char* key, auto& value) { read_option(given, key, value); });
}

/// The options of a configuration, defaults where it lacks a key. Throws ConfigError for a value of
/// another type.
template <class Options>
Options options_from(JsonObject& given) {
  Options options;
  read_fields(given, options);
  return options;
}

/// What makes an object that takes nothing but options of its "config", for Registered.
template <class Made, class Options>
Made made_of(JsonObject& config) {
  return Made(options_from<Options>(config));
}

}  // namespace tessera::detail
