#pragma once

#include <string>
#include <vector>

#include <tessera/framework/ops/window_axis.hpp>

namespace tessera {

/// What the pooling operations share: the terms of their rules, and how a block meets ATen, which
/// sees two spatial axes: one becomes (1, s).
struct Pooling {
  Windows windows;

  int64_t spatial() const { return windows.rank; }
  std::string term() const { return spatial() == 1 ? "n ~h c" : "n ~h ~w c"; }
  /// The spatial extents of a shape.
  std::vector<int64_t> extents(const Shape& x) const;
  /// A shape with other spatial extents.
  Shape over(Shape shape, const std::vector<int64_t>& extents) const;
  /// The output's shape. Throws ShapeError naming the operation.
  Shape pooled(std::string_view op, const Spec& x) const;

  /// A block (n, spatial…, c) as ATen's (n, c, h, w), and back, contiguous.
  at::Tensor image(const at::Tensor& x) const;
  at::Tensor back(const at::Tensor& y) const;
  std::vector<int64_t> sizes() const;
  std::vector<int64_t> strides() const;

  /// A block's spatial intervals: of an input, of the output.
  std::vector<Interval> in_ranges(const LocalArgs& in, size_t input) const;
  std::vector<Interval> out_ranges(const LocalArgs& in) const;
  /// The cells that outputs of some intervals read, padding included, and those of a block that
  /// follow but are too few for a window.
  std::vector<Interval> covered(const std::vector<Interval>& out,
                                const std::vector<Interval>& block) const;
  /// The first input's block over the covered cells; `value` where it has none.
  at::Tensor padded(const LocalArgs& in, const std::vector<Interval>& cover, double value) const;
  /// Of an image over the covered cells, those of the output's block; zeros where none covers it.
  at::Tensor cut(const at::Tensor& x, const LocalArgs& in,
                 const std::vector<Interval>& cover) const;
  /// Memory for an image over the covered cells, with batch and channels of another.
  at::Tensor plane(const at::Tensor& image, const std::vector<Interval>& cover) const;
  /// Zeros as the output's block.
  at::Tensor zeros(const LocalArgs& in) const;
};

}  // namespace tessera
