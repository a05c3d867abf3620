#pragma once

#include <string>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera::detail {

/// Whether an initializer scales what it draws by how many numbers a weight's shape sums, and
/// gives, as Keras counts them for a matrix or a convolution.
inline bool scales_by_fans(const InitializerHandle& initializer) {
  const std::string name = initializer->class_name();
  return name == "VarianceScaling" || name.starts_with("Glorot") || name.starts_with("He") ||
         name.starts_with("Lecun");
}

}  // namespace tessera::detail
