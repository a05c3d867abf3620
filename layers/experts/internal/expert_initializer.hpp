#pragma once

#include <cstdint>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera::detail {

/// What draws kernels (experts, in, out) each in the scale of a matrix (in, out), as if it were a
/// layer of its own.
InitializerHandle each_alone(const InitializerHandle& of_matrix, int64_t experts);

}  // namespace tessera::detail
