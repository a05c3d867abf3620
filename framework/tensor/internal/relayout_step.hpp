#pragma once

#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {

/// The mesh dimensions of a mask, ascending.
std::vector<int> dims_of(DimMask mask);

/// Carries out one step of a relayout on a value whose layout is the one before it. Collective,
/// except for a slice.
DTensor run_step(const DTensor& value, const RelayoutStep& step);

/// Each block of `to` as the part of the block of `from` that covers it: what a step that only
/// slices, or rechunk(), does. Views.
Blocks slice_blocks(const Sharding& from, const Blocks& blocks, const Sharding& to);

/// The value in the blocks of a sharding of the same layout, each of which lies inside one of its
/// own. An addend that stood for several of them goes to the first.
DTensor rechunk(const DTensor& value, const ShardingPtr& finer);

}  // namespace tessera::detail
