#pragma once

#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {

/// Returns the mesh dimensions of a mask, ascending.
std::vector<int> dims_of(DimMask mask);

/// Runs one step of a relayout on a value that is in the step's source layout. Collective, except
/// for a slice.
DTensor run_step(const DTensor& value, const RelayoutStep& step);

/// Returns the blocks of `to` as views of the blocks of `from` that cover them. Used by
/// split_blocks() and by steps that only slice.
Blocks slice_blocks(const Sharding& from, const Blocks& blocks, const Sharding& to);

/// Splits a value into the finer blocks of a sharding of the same layout. A partial sum of several
/// of these blocks goes to the first; the others are undefined.
DTensor split_blocks(const DTensor& value, const ShardingPtr& finer);

}  // namespace tessera::detail
