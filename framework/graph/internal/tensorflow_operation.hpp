#pragma once

#include <tessera/framework/base/json.hpp>

namespace tessera::detail {

/// Returns whether a layer of Keras 2's JSON is a function of TensorFlow that Keras 3 has as an
/// operation: a TFOpLambda of "math.multiply", or a SlicingOpLambda.
bool has_keras_operation(const Json& layer);

/// Converts such a layer, whose calls are already in Keras 3's format, to Keras 3's operation.
/// Throws ConfigError naming `path` for an argument that the operation does not have.
Json to_keras_operation(const Json& layer, const JsonPath& path);

}  // namespace tessera::detail
