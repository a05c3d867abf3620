#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/internal/window_axis.hpp>

namespace tessera::detail {

/// Shared part of the convolution operations: the terms of their rules, and the conversion of
/// blocks to and from ATen's layout. If grouped, a group axis precedes the channel axis.
struct Convolution {
  /// Arguments of at::convolution.
  struct Local {
    std::vector<int64_t> stride, dilation, padding, output_padding;
    bool operator==(const Local&) const = default;
  };

  Windows windows;
  bool grouped = false;

  int64_t spatial() const { return windows.rank; }
  int64_t channel_axes() const { return grouped ? 2 : 1; }
  int64_t groups(const at::Tensor& image) const { return grouped ? image.size(-2) : 1; }

  /// Returns the terms of a rule for an image (n, spatial…, [g,] channel) and for a kernel
  /// (window…, c, [g,] o).
  std::string image_term(const char* channel) const;
  std::string kernel_term(const char* channel = "c") const;
  /// Returns the shape of the result of an image and a kernel. Throws ShapeError if they do not
  /// fit.
  Shape conv_shape(std::string_view op, const Specs& in) const;

  /// Converts a kernel's block to ATen's (g o, c, window…), and back: views, if possible. On
  /// CPUs filters are in conv_kernel_order(), as weights are: others, such as gathered ones, are
  /// copied, since ATen's convolutions round in the order of memory.
  at::Tensor filters(const at::Tensor& kernel) const;
  at::Tensor kernel_of(const at::Tensor& filters, int64_t groups) const;
  /// Converts ATen's (n, g c, spatial…) to an image's block.
  at::Tensor image_of(const at::Tensor& y, int64_t groups) const;

  Local local() const;
  /// Returns the first input's block in ATen's layout with the padding that the windows of `out`
  /// read: as an argument in `local` where it is equal on both sides, else as added elements.
  at::Tensor padded(const LocalArgs& in, const std::vector<Interval>& out, Local& local) const;
};

/// Returns memory of ATen's shape of a kernel, (g o, c, window…), in conv_kernel_order().
at::Tensor like_kernel(const std::vector<int64_t>& sizes, const at::TensorOptions& options);

/// Returns the attributes of an operation "conv"; null for others.
const Convolution* convolution_of(const OpInfo& info, const void* op);

/// Throws ShapeError unless the channels or groups of an image and a kernel are equal.
void check_channels(std::string_view op, int64_t a, int64_t b, const Specs& in);

}  // namespace tessera::detail
