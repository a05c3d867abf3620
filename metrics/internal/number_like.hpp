#pragma once

#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

/// Returns a 0-d tensor with the mesh and dtype of `like`.
inline DTensor number_like(double value, const DTensor& like) {
  return scalar(value, like.mesh(), like.dtype());
}

}  // namespace tessera::detail
