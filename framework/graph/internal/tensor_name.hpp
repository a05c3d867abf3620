#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// The tensor that a configuration refers to.
struct TensorName {
  std::string layer;
  int64_t call;
  int64_t output;
};

/// Reads [layer, call, output]. Throws ConfigError naming the path.
TensorName tensor_name(const Json& json, const JsonPath& path);

/// Whether the JSON is a tensor's, as in the arguments of calls.
bool is_tensor(const Json& json);

/// Reads a tensor's JSON. Throws ConfigError naming the path.
TensorName name_of_tensor(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
