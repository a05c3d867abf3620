#include <tessera/framework/ops/internal/window_axis.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>

namespace tessera::detail {

Windows::Windows(const std::vector<WindowAxis>& list) : rank(static_cast<int64_t>(list.size())) {
  std::copy_n(list.begin(), std::min(list.size(), axes.size()), axes.begin());
}

Interval Windows::reads(int64_t i, Interval out, int64_t input) const {
  const WindowAxis& axis = (*this)[i];
  if (out == Interval{0, axis.outputs(input)} && !out.empty()) return {0, input};
  return intersect(axis.reads(out), {0, input});
}

size_t Windows::hash() const {
  size_t seed = static_cast<size_t>(rank);
  for (int64_t i = 0; i < rank; ++i) {
    const WindowAxis& a = (*this)[i];
    for (int64_t n : {a.size, a.stride, a.dilation, a.before, a.after}) {
      seed = mix(seed, static_cast<size_t>(n));
    }
  }
  return seed;
}

void check_windows(std::string_view op, const Windows& windows, const Spec& x, int64_t channels) {
  const std::string where(op);
  if (windows.rank < 1 || windows.rank > 3 || x.rank() != windows.rank + 1 + channels) {
    throw ShapeError(where,
                     str("x has a batch axis, ", windows.rank, " spatial ones (1 to 3) and ",
                         channels, channels == 1 ? " of channels" : " of channels' groups"),
                     to_string(x.shape), "reshape it");
  }
  for (int64_t i = 0; i < windows.rank; ++i) {
    const WindowAxis& axis = windows[i];
    if (axis.size < 1 || axis.stride < 1 || axis.dilation < 1) {
      throw ShapeError(where, "window sizes, strides and dilations are at least 1",
                       str(axis.size, ", ", axis.stride, " and ", axis.dilation), "");
    }
    if (axis.before < 0 || axis.after < 0) {
      throw ShapeError(where, "padding is at least 0", str(axis.before, " and ", axis.after),
                       "use slice to take elements away");
    }
    const int64_t extent = x.shape[size_t(i) + 1];
    if (extent >= 0 && axis.outputs(extent) < 1) {
      throw ShapeError(where, str("a window of ", axis.reach(), " fits into spatial axis ", i),
                       str(extent, " elements and a padding of ", axis.before + axis.after),
                       "use a smaller window or padding \"same\"");
    }
  }
}

std::pair<int64_t, int64_t> padding_counts(Interval have, Interval reads) {
  if (have.empty()) return {reads.size(), 0};
  return {have.lo - reads.lo, std::max<int64_t>(0, reads.hi - have.hi)};
}

at::Tensor channels_first(const at::Tensor& x, int64_t spatial) {
  return x.flatten(spatial + 1).movedim(-1, 1);
}

at::Tensor channels_last(const at::Tensor& x) { return x.movedim(1, -1).contiguous(); }

at::Tensor crop_or_pad(const at::Tensor& x, int64_t first,
                       const std::vector<std::pair<int64_t, int64_t>>& counts, double value) {
  std::vector<int64_t> pads;  // ATen's order: the last axis first
  bool any = false;
  const int64_t trailing = x.dim() - first - static_cast<int64_t>(counts.size());
  pads.assign(size_t(2 * trailing), 0);
  for (size_t i = counts.size(); i-- > 0;) {
    pads.push_back(counts[i].first);
    pads.push_back(counts[i].second);
    any = any || counts[i].first != 0 || counts[i].second != 0;
  }
  return any ? at::constant_pad_nd(x, pads, value) : x;
}

}  // namespace tessera::detail
