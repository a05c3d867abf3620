#pragma once

#include <string>
#include <vector>

#include <tessera/framework/ops/window_axis.hpp>

namespace tessera {

/// What the convolution operations share: the terms of their rules, and how a block meets ATen.
/// Grouped channels have an axis of their own before them.
struct Convolution {
  /// Arguments of at::convolution.
  struct Local {
    std::vector<int64_t> stride, dilation, padding, output_padding;
  };

  Windows windows;
  bool grouped = false;

  int64_t spatial() const { return windows.rank; }
  int64_t channel_axes() const { return grouped ? 2 : 1; }
  int64_t groups(const at::Tensor& image) const { return grouped ? image.size(-2) : 1; }

  /// Terms of a rule: an image (n, spatial…, [g,] channel) and a kernel (window…, c, [g,] o).
  std::string image_term(const char* channel) const;
  std::string kernel_term() const;

  /// A kernel's block as ATen's (g o, c, window…), and back, contiguous.
  at::Tensor filters(const at::Tensor& kernel) const;
  at::Tensor kernel_of(const at::Tensor& filters, int64_t groups) const;
  /// ATen's (n, g c, spatial…) as an image's block.
  at::Tensor image_of(const at::Tensor& y, int64_t groups) const;

  Local local() const;
  /// The first input's block as ATen takes it, with the padding that its windows for `out` reach
  /// into: as an argument where it is the same on both sides, else as cells.
  at::Tensor padded(const LocalArgs& in, const std::vector<Interval>& out, Local& local) const;
};

}  // namespace tessera
