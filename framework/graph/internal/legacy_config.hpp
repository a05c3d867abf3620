#pragma once

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Key of an InputLayer that to_keras_3_config() adds before the first layer of a Sequential:
/// errors count the layers in the file.
inline constexpr const char* implied_key = "implied";

/// Converts a model's configuration of Keras 1 and 2, or of Keras 3's ".h5" files, to the current
/// format, also one that get_config() returned, without "class_name"; returns other JSON unchanged.
/// A "keras_version" next to "class_name" decides the layers' defaults and what "hard_sigmoid" is;
/// without one, keys that only Keras 1 or 2 writes do. Throws ConfigError naming the layer for what
/// Keras 3 cannot express.
Json to_keras_3_config(Json serialized, const JsonPath& path);

}  // namespace tessera::detail
