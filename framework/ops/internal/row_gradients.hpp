#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Whether gradients of gather() along the first axis that this thread makes may be row-sparse; set
/// with a ScopedValue. They are where this saves work: on CPUs, in float32 and float64, for at most
/// half as many indices as there are rows.
bool& row_sparse_gradients();

/// Returns a + b. The sum of row-sparse values is row-sparse.
DTensor add_rows(const DTensor& a, const DTensor& b);

}  // namespace tessera::detail
