#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/window_axis.hpp>

namespace tessera::detail {

using ops::WindowAxis;

/// The window axes of an operation on (n, spatial…, c), one for each of 1 to 3 spatial axes.
struct Windows {
  std::array<WindowAxis, 3> axes;
  int64_t rank = 0;

  Windows() = default;
  Windows(const std::vector<WindowAxis>& list);  // NOLINT: reads as data
  const WindowAxis& operator[](int64_t i) const { return axes[size_t(i)]; }
  /// Returns the interval that outputs `out` along spatial axis i read from an input of this
  /// extent, without padding. All outputs read the full input, even if no window covers its end.
  Interval reads(int64_t i, Interval out, int64_t input) const;
  bool operator==(const Windows&) const = default;
  size_t hash() const;
};

/// Throws ShapeError naming the operation unless x is (n, spatial…, c…) with `channels` axes after
/// the spatial ones, and the windows have positive sizes, strides and dilations, paddings of at
/// least 0, and fit into x.
void check_windows(std::string_view op, const Windows& windows, const Spec& x, int64_t channels);

/// Returns the number of padding elements before and after a block that holds `have` if its windows
/// read `reads`.
std::pair<int64_t, int64_t> padding_counts(Interval have, Interval reads);

/// Returns (n, spatial…, c…) as ATen's (n, c, spatial…), a view. Merges the axes after the spatial
/// ones.
at::Tensor channels_first(const at::Tensor& x, int64_t spatial);
/// Returns ATen's (n, c, spatial…) as (n, spatial…, c), contiguous.
at::Tensor channels_last(const at::Tensor& x);
/// Pads a tensor's axes from `first` on with a value: pairs of counts before and after. Negative
/// counts crop.
at::Tensor crop_or_pad(const at::Tensor& x, int64_t first,
                       const std::vector<std::pair<int64_t, int64_t>>& counts, double value = 0);

}  // namespace tessera::detail
