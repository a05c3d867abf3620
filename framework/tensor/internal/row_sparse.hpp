#pragma once

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns a sparse block (count, …) with these rows, of which several may have one index: `index`
/// (r), `rows` (r, …).
at::Tensor row_sparse_block(const at::Tensor& index, const at::Tensor& rows, int64_t count);

/// Moves a row-sparse value, which is no partial sum, to another sharding: it keeps the rows that
/// it has, also those of zeros. Only slices, as between replicas and shards, are fast. Collective.
DTensor relayout_rows(const DTensor& value, const ShardingPtr& target);

}  // namespace tessera::detail
