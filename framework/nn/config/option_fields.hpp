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

/// Converts option structs to Keras configurations and back. An option struct provides a function
/// fields(options, visit), which calls visit(key, member) for each member.
namespace tessera::detail {

/// An enum with a function names_of(E) that returns Keras' names in the order of the enumerators.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  names_of(value)[0];
};

/// Serializes an option as Keras does: an activation by activation_json(), another object as
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

/// Reads an enumerator by Keras' name, ignoring case; None stands for "none".
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

/// Sets `out` if the key is present and not None. Throws ConfigError naming the key.
template <class T>
void read_option(JsonObject& config, const std::string& key, T& out) {
  if (const auto value = config.take_optional<T>(key)) out = *value;
}
/// Sets `out` if the key is present; None becomes std::nullopt.
template <class T>
void read_option(JsonObject& config, const std::string& key, std::optional<T>& out) {
  const auto value = config.take_optional<T>(key);
  if (config.has(key)) out = value;
}
/// Reads a list; a single number is a list of one.
template <class T>
requires std::is_arithmetic_v<T>
void read_option(JsonObject& config, const std::string& key, std::vector<T>& out) {
  const auto value = config.take_optional<Json>(key);
  if (!value) return;
  const JsonPath path = config.path().key(key);
  if (value->is_number()) {
    out = {json_as<T>(*value, path)};
  } else {
    json_get(*value, path, out);
  }
}
template <NamedEnum E>
void read_option(JsonObject& config, const std::string& key, E& out) {
  const bool present = config.take_optional<Json>(key) || config.has(key);
  if (present) out = config.take<E>(key);
}
/// Takes a Keras option that is not supported.
inline void read_option(JsonObject& config, const std::string& key, std::nullptr_t&) {
  take_nulls(config, {key});
}

/// Serializes options as a Keras configuration.
template <class Options>
Json config_of(Options options) {
  Json config = Json::object();
  fields(options, [&](const char* key, auto& value) { config[key] = option_json(value); });
  return config;
}

/// Like config_of(), with an empty name replaced by the class name in snake_case.
template <class Options>
Json named_config(const char* class_name, Options options) {
  if (options.name.empty()) options.name = snake_case(class_name);
  return config_of(std::move(options));
}

/// Reads options from a configuration. Options whose key is absent keep their value. Null sets a
/// std::optional to nullopt and an enumerator to "none"; other options keep their value. Throws
/// ConfigError for a value of another type.
template <class Options>
void read_fields(JsonObject& config, Options& options) {
  fields(options, [&](const char* key, auto& value) { read_option(config, key, value); });
}

/// Reads options from a configuration, with defaults for absent keys. Throws ConfigError for a
/// value of another type.
template <class Options>
Options options_from(JsonObject& config) {
  Options options;
  read_fields(config, options);
  return options;
}

/// Creates an object whose constructor takes its options only; a factory for Registered.
template <class Made, class Options>
Made made_of(JsonObject& config) {
  return Made(options_from<Options>(config));
}

}  // namespace tessera::detail
