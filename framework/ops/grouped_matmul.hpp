#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Multiplies each row of x, (…, d), by the matrix of its group, kernels (E, d, o): row r of the
/// result (…, o) is x[r] · kernels[groups[r]], with `groups` integers (…). Rows are sorted by
/// group, so that each group is one product of matrices, of whatever size (MegaBlocks, arXiv
/// 2211.15841). On a GPU, the host waits for the sizes of the groups.
///
/// Rows and o may be sharded without communication; a sharded d leaves a partial sum, and so do
/// sharded groups, of which each device multiplies the rows of its own. Throws ShapeError for
/// shapes that do not fit, ConfigError for another dtype and a group outside [0, E).
DTensor grouped_matmul(const DTensor& x, const DTensor& kernels, const DTensor& groups);

}  // namespace tessera::ops
