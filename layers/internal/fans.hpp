#pragma once

#include <string>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera::detail {

/// Returns whether an initializer scales its draws by the fan-in and fan-out of a weight's shape,
/// as Keras computes them for a matrix or a convolution.
inline bool scales_by_fans(const InitializerHandle& initializer) {
  const std::string name = initializer->class_name();
  return name == "VarianceScaling" || name.starts_with("Glorot") || name.starts_with("He") ||
         name.starts_with("Lecun");
}

}  // namespace tessera::detail
