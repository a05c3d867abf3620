#pragma once

#include <string>
#include <vector>

#include <tessera/framework/model/internal/functional_config.hpp>

namespace tessera::detail {

/// What Keras calls the first argument of a layer's calls.
std::string first_argument(const std::string& layer);
/// Names of the arguments behind it, where Keras' layers take several.
std::vector<std::string> further_arguments(const std::string& layer);

/// The values of a dict in the order of its keys; anything else as it is.
Json in_key_order(const Json& json);
/// Adds the names of a tensor, or of several in a list or a dict. Throws ConfigError.
void add_inputs(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path);
/// The arguments of an operation with places for tensors; adds their names. Throws ConfigError.
Json with_places(std::vector<TensorName>& inputs, const Json& json, const JsonPath& path);

/// The tensors of "input_layers" or "output_layers", and where each is written.
struct EndNames {
  std::vector<TensorName> names;
  std::vector<JsonPath> paths;
  std::vector<std::string> keys;  ///< of a dict, sorted; none for a list
};

/// From one tensor, a list or an object of tensors. Throws ConfigError naming the place.
EndNames end_names(const Json& json, const JsonPath& path);

}  // namespace tessera::detail
