#include <tessera/framework/tensor/internal/row_sparse.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

bool only_slices(const Layout& from, const Layout& to) {
  const std::vector<RelayoutStep> steps = plan_relayout(from, to);
  return std::all_of(steps.begin(), steps.end(), [](const RelayoutStep& step) {
    return step.kind == RelayoutStep::Kind::slice;
  });
}

/// Returns the index of a block that covers these intervals; the number of blocks if none does.
size_t covering_block(const Sharding& sharding, const std::vector<Interval>& want) {
  const auto covers = [&](const BlockInfo& block) {
    if (block.empty) return false;
    for (size_t a = 0; a < want.size(); ++a) {
      if (!(intersect(block.intervals[a], want[a]) == want[a])) return false;
    }
    return true;
  };
  const auto found = std::find_if(sharding.blocks.begin(), sharding.blocks.end(), covers);
  return static_cast<size_t>(found - sharding.blocks.begin());
}

/// Returns the part of a block that covers `have` in the intervals `want`.
at::Tensor cut(const at::Tensor& block, const std::vector<Interval>& have,
               const std::vector<Interval>& want) {
  at::Tensor index = block._indices()[0], rows = block._values();
  for (size_t a = 1; a < want.size(); ++a) {
    rows = rows.narrow(int64_t(a), want[a].lo - have[a].lo, want[a].size());
  }
  if (want[0] == have[0]) return row_sparse_block(index, rows, want[0].size());
  index = index - (want[0].lo - have[0].lo);
  const at::Tensor inside = index.ge(0).logical_and_(index.lt(want[0].size())).nonzero().flatten();
  return row_sparse_block(index.index_select(0, inside), rows.index_select(0, inside),
                          want[0].size());
}

/// Returns the layout of the first axis alone.
Layout first_axis(const Layout& layout) {
  return Layout::from_axes(layout.mesh(), {layout.axis(0)});
}

/// Returns ones for the rows that the value has and zeros for the others, a bool vector.
DTensor present_rows(const DTensor& value) {
  const ShardingPtr sharding = intern({value.size(0)}, at::kBool, first_axis(value.layout()));
  Blocks blocks;
  for (const BlockInfo& want : sharding->blocks) {
    std::vector<Interval> intervals = {want.intervals[0]};
    const at::Tensor present = at::zeros({want.intervals[0].size()}, at::kBool);
    for (size_t b = 0; b < value.stored_blocks().size(); ++b) {
      const Interval have = value.sharding()->blocks[b].intervals[0];
      const Interval common = intersect(have, want.intervals[0]);
      if (common.empty()) continue;
      const at::Tensor here = at::zeros({have.size()}, at::kBool);
      here.index_fill_(0, value.stored_blocks()[b]._indices()[0], true);
      present.narrow(0, common.lo - want.intervals[0].lo, common.size())
          .logical_or_(here.narrow(0, common.lo - have.lo, common.size()));
    }
    blocks.push_back(present);
  }
  return {sharding, std::move(blocks)};
}

/// Moves the dense value, and which rows it has.
DTensor move_dense(const DTensor& value, const ShardingPtr& target) {
  const ShardingPtr rows = intern({value.size(0)}, at::kBool, first_axis(target->layout));
  const DTensor present = relayout_to(present_rows(value), rows);
  const DTensor dense = relayout_to(DTensor(value.sharding(), value.blocks()), target);
  Blocks blocks;
  for (size_t b = 0; b < target->blocks.size(); ++b) {
    const std::vector<Interval> axis = {target->blocks[b].intervals[0]};
    at::Tensor index = at::empty({0}, at::kLong);
    if (const size_t source = covering_block(*rows, axis); source < rows->blocks.size()) {
      const Interval have = rows->blocks[source].intervals[0];
      index = present.blocks()[source]
                  .narrow(0, axis[0].lo - have.lo, axis[0].size())
                  .nonzero()
                  .flatten();
    }
    const at::Tensor& block = dense.blocks()[b];
    blocks.push_back(row_sparse_block(index, block.index_select(0, index), axis[0].size()));
  }
  return {target, std::move(blocks)};
}

}  // namespace

at::Tensor row_sparse_block(const at::Tensor& index, const at::Tensor& rows, int64_t count) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = count;
  return at::_sparse_coo_tensor_unsafe(index.unsqueeze(0), rows, shape);
}

DTensor relayout_rows(const DTensor& value, const ShardingPtr& target) {
  const c10::InferenceMode inference;
  if (!only_slices(value.layout(), target->layout)) return move_dense(value, target);
  Blocks blocks;
  for (const BlockInfo& want : target->blocks) {
    const DeviceMemory::For memory(want.devices.front());
    const size_t source = want.empty ? value.stored_blocks().size()
                                     : covering_block(*value.sharding(), want.intervals);
    if (source == value.stored_blocks().size()) {
      // The shard is empty, or several blocks cover it, which no block policy makes of a slice.
      return move_dense(value, target);
    }
    blocks.push_back(cut(value.stored_blocks()[source], value.sharding()->blocks[source].intervals,
                         want.intervals));
  }
  return {target, std::move(blocks)};
}

}  // namespace tessera::detail
