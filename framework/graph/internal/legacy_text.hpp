#pragma once

#include <string>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Returns the text under a key; empty if there is none.
inline std::string text_at(const Json& json, const char* key) {
  const bool there = json.is_object() && json.contains(key) && json[key].is_string();
  return there ? json[key].get<std::string>() : "";
}

/// Returns "config" if it is an object, else null.
inline Json* config_of_layer(Json& layer) {
  const bool there = layer.is_object() && layer.contains("config") && layer["config"].is_object();
  return there ? &layer["config"] : nullptr;
}

}  // namespace tessera::detail
