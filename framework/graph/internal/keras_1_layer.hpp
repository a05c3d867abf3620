#pragma once

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Converts a layer of Keras 1 with its "class_name" and "config", but not the layers in it, to
/// Keras 2's names: a Convolution2D with "nb_filter" becomes a Conv2D with "filters". Throws
/// ConfigError naming `path` for what Keras 2 cannot express.
void to_keras_2_layer(Json& layer, const JsonPath& path);

}  // namespace tessera::detail
