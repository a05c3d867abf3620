#include <tessera/framework/tensor/relayout_step.hpp>

#include <algorithm>

#include <ATen/ATen.h>

namespace tessera {
namespace {

std::vector<int64_t> first_coordinates(const Sharding& sharding, const BlockInfo& block) {
  std::vector<int64_t> at;
  const Mesh& mesh = sharding.mesh();
  for (size_t d = 0; d < block.group.size(); ++d) {
    const int64_t size = mesh.dim_size(static_cast<int>(d));
    // An unused dimension's single group may begin in another process.
    at.push_back(
        std::max(mesh.local_box()[d].lo, group_range(size, sharding.groups[d], block.group[d]).lo));
  }
  return at;
}

/// Whether this block of the result is the one that a block's addend goes to.
bool keeps_addend(const Sharding& from, const BlockInfo& whole, const Sharding& to,
                  const BlockInfo& block) {
  for (size_t d = 0; d < block.group.size(); ++d) {
    if (!(from.layout.pending_dims() >> d & 1)) continue;
    const int64_t size = from.mesh().dim_size(static_cast<int>(d));
    if (group_range(size, from.groups[d], whole.group[d]).lo !=
        group_range(size, to.groups[d], block.group[d]).lo) {
      return false;
    }
  }
  return true;
}

}  // namespace

Blocks slice_blocks(const Sharding& from, const Blocks& blocks, const Sharding& to) {
  Blocks out;
  for (const BlockInfo& block : to.blocks) {
    const auto source = static_cast<size_t>(from.block_of(first_coordinates(to, block)));
    const BlockInfo& whole = from.blocks[source];
    at::Tensor piece = blocks[source];
    // An addend that stood for several devices stays with the first.
    if (!keeps_addend(from, whole, to, block)) piece = at::Tensor();
    for (size_t a = 0; piece.defined() && a < block.intervals.size(); ++a) {
      const Interval want = block.intervals[a], have = whole.intervals[a];
      if (want == have) continue;
      piece = piece.narrow(static_cast<int64_t>(a), want.lo - have.lo, want.size());
    }
    out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace tessera
