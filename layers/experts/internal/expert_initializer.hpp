#pragma once

#include <cstdint>

#include <tessera/framework/nn/initializers/initializer.hpp>

namespace tessera::detail {

/// Returns an initializer of kernels (experts, in, out) that scales each expert's like a matrix
/// (in, out) of its own.
InitializerHandle per_expert_initializer(const InitializerHandle& of_matrix, int64_t experts);

}  // namespace tessera::detail
