#pragma once

#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

/// A number, 0-d, of the mesh and dtype of `like`.
inline DTensor number_like(double value, const DTensor& like) {
  return scalar(value, like.mesh(), like.dtype());
}

}  // namespace tessera::detail
