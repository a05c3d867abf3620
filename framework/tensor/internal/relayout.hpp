#pragma once

#include <vector>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// One step of a relayout.
struct RelayoutStep {
  enum class Kind : uint8_t { slice, all_gather, all_reduce, reduce_scatter, all_to_all };
  Kind kind;
  std::vector<int> dims;  ///< mesh dimensions it works over, most significant first
  int64_t axis = 0;       ///< axis gathered, scattered, sliced, or left by all_to_all
  int64_t to_axis = 0;    ///< axis that all_to_all shards instead
  Layout after;
};

/// Plans the steps from one layout to another, those with the fewest bytes first: free slices,
/// reduce-scatter of partial sums into shards, all-to-all from one axis to another, and all-gather
/// of the rest. A pure function. Throws LayoutError when the target is a partial sum that the
/// source is not.
std::vector<RelayoutStep> plan_relayout(const Layout& from, const Layout& to);

/// Returns the collective of a step other than a slice.
CommOp comm_op(RelayoutStep::Kind kind);

/// Returns the CommLog entry of a step on a value of layout `before`; no bytes for a slice.
CommEntry step_entry(const Shape& shape, at::ScalarType dtype, const Layout& before,
                     const RelayoutStep& step);

/// Returns the bytes that each device receives in a relayout; infinity where a view would have to
/// exchange values along a dimension that it fixes.
double relayout_bytes(const Shape& shape, at::ScalarType dtype, const Layout& from,
                      const Layout& to);

/// Moves a value to the layout and blocks of `target`. If it stays a partial sum, each of these
/// blocks is contained in a block of the value.
DTensor relayout_to(const DTensor& value, const ShardingPtr& target);

/// All-reduces a partial sum, in this handle and its copies; then replicated over those dimensions.
void resolve(const DTensor& value);

}  // namespace tessera::detail
