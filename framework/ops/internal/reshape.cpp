#include <tessera/framework/ops/internal/reshape.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/halo_exchange.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

using AxisGroups = std::vector<std::vector<int>>;

/// Returns the axis of a group that can be sharded: the first of extent > 1.
int64_t major_axis(const Shape& shape, int64_t begin, int64_t end) {
  for (int64_t a = begin; a < end; ++a) {
    if (shape[size_t(a)] > 1) return a;
  }
  return begin;
}

int64_t product(const Shape& shape, int64_t begin, int64_t end) {
  int64_t n = 1;
  for (int64_t a = begin; a < end; ++a) n *= shape[size_t(a)];
  return n;
}

std::vector<Interval> scaled(std::vector<Interval> intervals, int64_t factor) {
  for (Interval& i : intervals) i = {i.lo * factor, i.hi * factor};
  return intervals;
}

class Reshaper {
 public:
  Reshaper(const DTensor& x, const Shape& shape)
      : x_(x), shape_(shape), groups_(reshape_groups(x.shape(), shape)) {}

  DTensor run() {
    choose_layouts();
    const DTensor x = relayout_value(x_, before_);
    const ShardingPtr in = x.sharding();
    const ShardingPtr out = intern(shape_, x.dtype(), after_, in->groups);
    const ShardingPtr flat = intern(flat_shape_, x.dtype(), flat_, in->groups);
    Blocks blocks = x.blocks();
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (flat_.axis(int64_t(g)).empty()) continue;
      const ReshapeGroup& group = groups_[g];
      const int64_t a = major_axis(x.shape(), group.in_begin, group.in_end);
      const int64_t b = major_axis(shape_, group.out_begin, group.out_end);
      const AxisShards have{
          int64_t(g), scaled(layout_shards(*in, a).have, product(x.shape(), a + 1, group.in_end))};
      const std::vector<Interval> want =
          scaled(layout_shards(*out, b).have, product(shape_, b + 1, group.out_end));
      if (want == have.have) continue;
      flatten(*in, blocks);
      blocks = gather_intervals(*flat, blocks, have, want, 0);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].defined()) blocks[i] = blocks[i].reshape(extents(out->blocks[i].intervals));
    }
    return DTensor(out, std::move(blocks));
  }

 private:
  /// Moves all mesh dimensions of a group to its major axis, in the input and in the output.
  void choose_layouts() {
    const Layout& layout = x_.layout();
    AxisGroups before(x_.shape().size()), after(shape_.size()), flat(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      const ReshapeGroup& group = groups_[g];
      flat_shape_.push_back(product(shape_, group.out_begin, group.out_end));
      if (group.in_begin == group.in_end || group.out_begin == group.out_end) continue;
      std::vector<int> dims;
      for (int64_t a = group.in_begin; a < group.in_end; ++a) {
        if (x_.shape()[size_t(a)] == 1) continue;
        dims.insert(dims.end(), layout.axis(a).begin(), layout.axis(a).end());
      }
      before[size_t(major_axis(x_.shape(), group.in_begin, group.in_end))] = dims;
      after[size_t(major_axis(shape_, group.out_begin, group.out_end))] = dims;
      flat[g] = dims;
    }
    const auto make = [&](AxisGroups axes) {
      return Layout::from_axes(layout.mesh(), std::move(axes), layout.partial_dims(),
                               layout.partial_kind());
    };
    before_ = make(std::move(before));
    after_ = make(std::move(after));
    flat_ = make(std::move(flat));
  }

  /// Reshapes the blocks to one axis per group, on the first call only.
  void flatten(const Sharding& in, Blocks& blocks) {
    if (flattened_) return;
    flattened_ = true;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Shape block = extents(in.blocks[i].intervals);
      Shape shape;
      for (const ReshapeGroup& g : groups_) shape.push_back(product(block, g.in_begin, g.in_end));
      if (!blocks[i].defined()) {
        blocks[i] =
            reduce_identity(in.layout.partial_kind(), shape, block_options(in, in.blocks[i]));
      }
      blocks[i] = blocks[i].reshape(shape);
    }
  }

  const DTensor& x_;
  const Shape& shape_;
  std::vector<ReshapeGroup> groups_;
  Layout before_, after_, flat_;
  Shape flat_shape_;
  bool flattened_ = false;
};

}  // namespace

std::vector<ReshapeGroup> reshape_groups(const Shape& in, const Shape& out) {
  if (numel(in) != numel(out)) {
    throw ShapeError("reshape", "both shapes must have the same number of elements",
                     to_string(in) + " to " + to_string(out), "correct the new shape");
  }
  std::vector<ReshapeGroup> groups;
  const int64_t rank_in = int64_t(in.size()), rank_out = int64_t(out.size());
  int64_t i = 0, j = 0;
  while (i < rank_in || j < rank_out) {
    ReshapeGroup group{i, i, j, j};
    int64_t left = 1, right = 1;
    if (i < rank_in) left = in[size_t(i++)];
    if (j < rank_out) right = out[size_t(j++)];
    while (left != right) {
      if ((left < right && i < rank_in) || j >= rank_out) {
        left *= in[size_t(i++)];
      } else {
        right *= out[size_t(j++)];
      }
    }
    group.in_end = i;
    group.out_end = j;
    groups.push_back(group);
  }
  return groups;
}

DTensor reshape_value(const DTensor& x, const Shape& shape) {
  const c10::InferenceMode inference;
  if (numel(x.shape()) == 0) {
    // Nothing to move; the sharding of an empty tensor need not be kept.
    reshape_groups({0}, {numel(shape)});
    return filled(shape, 0, x.dtype(), Layout::replicated(x.mesh(), int64_t(shape.size())));
  }
  return Reshaper(x, shape).run();
}

}  // namespace tessera::detail
