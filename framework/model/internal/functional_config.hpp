#pragma once

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Makes a layer or model from {"class_name", "config"}; `depth` counts the enclosing models.
/// Throws ConfigError naming the path.
LayerHandle any_layer_from_config(const Json& serialized, const JsonPath& path, int depth);

/// Makes a Functional model from its "config": "layers" with their calls in Keras' "inbound_nodes",
/// "input_layers", "output_layers". Throws ConfigError naming the path.
LayerHandle functional_from_config(const Json& config, const JsonPath& path, int depth);

}  // namespace tessera::detail
