#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns the partial sums of a value that is not reduced, of shape [n, ...]: along a leading axis
/// that is sharded over the mesh dimensions over which they are to be reduced; these have n
/// coordinates. A block that stands for several coordinates is the sum of the first; the others'
/// are 0.
DTensor stacked_sums(const DTensor& sum);
/// Inverts stacked_sums(). The result has a block for each coordinate.
DTensor unstacked_sums(const DTensor& stacked);

}  // namespace tessera::detail
