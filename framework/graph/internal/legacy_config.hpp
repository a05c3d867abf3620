#pragma once

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Converts a model's configuration of Keras 2, or of Keras 3's ".h5" files, to the current format;
/// returns other JSON unchanged. A "keras_version" next to "class_name" decides the layers'
/// defaults. Throws ConfigError naming the layer for what Keras 3 cannot express.
Json to_keras_3_config(Json serialized, const JsonPath& path);

/// Converts the "training_config" of such a file to the current "compile_config". Throws
/// ConfigError naming the path.
Json to_keras_3_compile_config(Json training, const JsonPath& path);

}  // namespace tessera::detail
