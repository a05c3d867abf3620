#pragma once

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Converts how a model is compiled, as Keras 2 writes it into archives ("compile_config") and into
/// ".h5" files ("training_config"), to the current "compile_config"; returns other JSON unchanged.
/// Throws ConfigError naming the path.
Json to_keras_3_compile_config(Json compiled, const JsonPath& path);

}  // namespace tessera::detail
