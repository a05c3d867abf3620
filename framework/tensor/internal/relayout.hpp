#pragma once

#include <vector>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// One step on the way from one layout to another.
struct RelayoutStep {
  enum class Kind : uint8_t { slice, all_gather, all_reduce, reduce_scatter, all_to_all };
  Kind kind;
  std::vector<int> dims;  ///< mesh dimensions it works over, most significant first
  int64_t axis = 0;       ///< axis gathered, scattered, sliced, or left by all_to_all
  int64_t to_axis = 0;    ///< axis that all_to_all cuts instead
  Layout after;
};

/// The steps that bring a layout to another, fewest bytes first: free slices, pending sums straight
/// into shards, shards from one axis to another by all-to-all, the rest by all-gather. A pure
/// function. Throws LayoutError when the target is pending and the source is not so.
std::vector<RelayoutStep> plan_relayout(const Layout& from, const Layout& to);

/// What a step other than a slice is called.
CommOp comm_op(RelayoutStep::Kind kind);

/// What a step on a value of layout `before` adds to a communication log; no bytes for a slice.
CommEntry step_entry(const Shape& shape, at::ScalarType dtype, const Layout& before,
                     const RelayoutStep& step);

/// Bytes that each device receives on the way.
double relayout_bytes(const Shape& shape, at::ScalarType dtype, const Layout& from,
                      const Layout& to);

/// A value under another layout of its mesh (tf.experimental.dtensor.relayout).
/// Collective; free where it only slices. Throws MeshError for a layout of another mesh,
/// LayoutError for one of another rank. Not recorded on a tape: ops::relayout is.
DTensor relayout_value(const DTensor& value, const Layout& layout);

/// A value under another layout, as relayout_value() gives it, and cut into the blocks that
/// `target` names. Where a reduction stays pending, each of these lies inside a block of the value.
DTensor relayout_to(const DTensor& value, const ShardingPtr& target);

/// Finishes a pending reduction, in this handle and its copies: replicated over those dimensions.
void resolve(const DTensor& value);

}  // namespace tessera::detail
