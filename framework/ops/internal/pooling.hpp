#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/internal/window_axis.hpp>

namespace tessera::detail {

/// Shared part of the pooling operations: the terms of their rules, and the conversion of blocks to
/// and from ATen's layout, which has two or three spatial axes: a single one becomes (1, s).
struct Pooling {
  Windows windows;

  int64_t spatial() const { return windows.rank; }
  /// Whether ATen's kernels are those of volumes.
  bool is_volume() const { return spatial() == 3; }
  at::MemoryFormat memory_format() const {
    return is_volume() ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  }
  std::string term() const;
  /// Returns the spatial extents of a shape.
  std::vector<int64_t> extents(const Shape& x) const;
  /// Returns a shape with other spatial extents.
  Shape with_extents(Shape shape, const std::vector<int64_t>& extents) const;
  /// Returns the output's shape. Throws ShapeError naming the operation.
  Shape pooled(std::string_view op, const Spec& x) const;

  /// Converts a block (n, spatial…, c) to ATen's (n, c, …, h, w), and back to a contiguous one.
  at::Tensor to_image(const at::Tensor& x) const;
  at::Tensor from_image(const at::Tensor& y) const;
  std::vector<int64_t> sizes() const;
  std::vector<int64_t> strides() const;

  /// Returns the spatial intervals of the block of an input, and of the output.
  std::vector<Interval> in_ranges(const LocalArgs& in, size_t input) const;
  std::vector<Interval> out_ranges(const LocalArgs& in) const;
  /// Returns the intervals that the outputs `out` read, padding included, extended to the end of
  /// `block` where the elements left are too few for another window.
  std::vector<Interval> read_intervals(const std::vector<Interval>& out,
                                       const std::vector<Interval>& block) const;
  /// Returns the first input's block cut or padded with `value` to `intervals`.
  at::Tensor padded(const LocalArgs& in, const std::vector<Interval>& intervals,
                    double value) const;
  /// Cuts or zero-pads an image over `intervals` to the output's block.
  at::Tensor crop_to_output(const at::Tensor& x, const LocalArgs& in,
                            const std::vector<Interval>& intervals) const;
  /// Allocates an image over `intervals`, with the batch and channels of `image`.
  at::Tensor empty_image(const at::Tensor& image, const std::vector<Interval>& intervals) const;
  /// Returns zeros of the output block's shape.
  at::Tensor zeros(const LocalArgs& in) const;
};

/// Converts row-major positions in an image of the extents `of` to an image of the extents `to`:
/// `from` is added to their coordinates, which are clamped to `to`.
at::Tensor reindexed(const at::Tensor& positions, const std::vector<int64_t>& from,
                     const std::vector<int64_t>& of, const std::vector<int64_t>& to);

}  // namespace tessera::detail
