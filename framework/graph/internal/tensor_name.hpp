#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Which tensor a configuration means.
struct TensorName {
  std::string layer;
  int64_t call;
  int64_t output;
};

/// From [layer, call, output]. Throws ConfigError naming the place.
TensorName tensor_name(const Json& json, const JsonPath& path);

/// Whether the JSON is a tensor's, as arguments of calls are.
bool is_tensor(const Json& json);

/// From a tensor's JSON. Throws ConfigError naming the place.
TensorName name_of_tensor(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
