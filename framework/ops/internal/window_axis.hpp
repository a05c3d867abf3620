#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::detail {

/// How a window moves along one spatial axis: output i reads the input at
/// i * stride - before + k * dilation, k in [0, size). Cells outside the input are padding.
struct WindowAxis {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;
  int64_t after = 0;

  /// Cells from the first that a window reads to the last.
  int64_t reach() const { return (size - 1) * dilation + 1; }
  /// Windows that fit into an input of an extent.
  int64_t outputs(int64_t input) const;
  /// What outputs in [lo, hi) read, padding included.
  Interval reads(Interval out) const;
  /// The outputs, of `outputs`, that read any of the inputs in [lo, hi).
  Interval readers(Interval in, int64_t outputs) const;
  bool operator==(const WindowAxis&) const = default;
};

/// The window axes of an operation on (n, spatial…, c), one for each of 1 to 3 spatial axes.
struct Windows {
  std::array<WindowAxis, 3> axes;
  int64_t rank = 0;

  Windows() = default;
  Windows(const std::vector<WindowAxis>& list);  // NOLINT: reads as data
  const WindowAxis& operator[](int64_t i) const { return axes[size_t(i)]; }
  /// What an output's interval along spatial axis i reads of an input of an extent, without
  /// padding. All of the input where it is all of the output: nothing is cut off then.
  Interval reads(int64_t i, Interval out, int64_t input) const;
  bool operator==(const Windows&) const = default;
  size_t hash() const;
};

/// Throws ShapeError naming the operation unless x is (n, spatial…, c…) with `channels` axes behind
/// the spatial ones, windows have positive sizes, strides and dilations and paddings of at least 0,
/// and fit into x.
void check_windows(std::string_view op, const Windows& windows, const Spec& x, int64_t channels);

/// Cells of padding before and after a block that has an interval where windows read more.
std::pair<int64_t, int64_t> padding_cells(Interval have, Interval reads);

/// (n, spatial…, c) as ATen takes it, (n, c, spatial…); a view. Axes behind the spatial ones merge.
at::Tensor channels_first(const at::Tensor& x, int64_t spatial);
/// Back, contiguous.
at::Tensor channels_last(const at::Tensor& x);
/// A tensor's axes from `first` on cut or padded with a value: pairs of counts before and after,
/// negative ones cut.
at::Tensor fit_axes(const at::Tensor& x, int64_t first,
                    const std::vector<std::pair<int64_t, int64_t>>& counts, double value = 0);

}  // namespace tessera::detail
