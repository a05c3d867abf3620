#pragma once

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// A layer or model of {"class_name", "config"}; `depth` counts the models around it. Throws
/// ConfigError naming the place.
LayerHandle any_layer_from_config(const Json& serialized, const JsonPath& path, int depth);

/// A Functional model from its "config": "layers" with their calls as Keras' "inbound_nodes",
/// "input_layers", "output_layers". Throws ConfigError naming the place.
LayerHandle functional_from_config(const Json& config, const JsonPath& path, int depth);

}  // namespace tessera::detail
