#include <tessera/framework/ops/pooling.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {
namespace {

using Counts = std::vector<std::pair<int64_t, int64_t>>;

/// Cuts or pads the spatial axes of ATen's image.
at::Tensor fit_image(const at::Tensor& image, Counts counts, double value) {
  if (counts.size() == 1) counts.insert(counts.begin(), {0, 0});
  return fit_axes(image, 2, counts, value);
}

}  // namespace

std::vector<int64_t> Pooling::extents(const Shape& x) const {
  return {x.begin() + 1, x.begin() + 1 + spatial()};
}

Shape Pooling::over(Shape shape, const std::vector<int64_t>& extents) const {
  std::copy(extents.begin(), extents.end(), shape.begin() + 1);
  return shape;
}

Shape Pooling::pooled(std::string_view op, const Spec& x) const {
  if (spatial() > 2) {
    throw ShapeError(std::string(op), "one or two axes are pooled", str(spatial()), "");
  }
  check_windows(op, windows, x, 1);
  for (int64_t i = 0; i < spatial(); ++i) {
    if (windows[i].dilation == 1) continue;
    throw ShapeError(std::string(op), "windows have no gaps",
                     str("a dilation of ", windows[i].dilation), "leave dilation at 1");
  }
  Shape y = x.shape;
  for (int64_t i = 0; i < spatial(); ++i) y[size_t(i) + 1] = windows[i].outputs(y[size_t(i) + 1]);
  return y;
}

at::Tensor Pooling::image(const at::Tensor& x) const {
  const at::Tensor y = channels_first(x, spatial());
  return spatial() == 1 ? y.unsqueeze(2) : y;
}

at::Tensor Pooling::back(const at::Tensor& y) const {
  return channels_last(spatial() == 1 ? y.squeeze(2) : y);
}

std::vector<int64_t> Pooling::sizes() const {
  std::vector<int64_t> list(size_t(2 - spatial()), 1);
  for (int64_t i = 0; i < spatial(); ++i) list.push_back(windows[i].size);
  return list;
}

std::vector<int64_t> Pooling::strides() const {
  std::vector<int64_t> list(size_t(2 - spatial()), 1);
  for (int64_t i = 0; i < spatial(); ++i) list.push_back(windows[i].stride);
  return list;
}

std::vector<Interval> Pooling::in_ranges(const LocalArgs& in, size_t input) const {
  const std::vector<Interval>& all = in.ranges(input);
  return {all.begin() + 1, all.begin() + 1 + spatial()};
}

std::vector<Interval> Pooling::out_ranges(const LocalArgs& in) const {
  std::vector<Interval> list;
  for (int64_t i = 0; i < spatial(); ++i) list.push_back(in.out_range(i + 1));
  return list;
}

std::vector<Interval> Pooling::covered(const std::vector<Interval>& out,
                                       const std::vector<Interval>& block) const {
  std::vector<Interval> list;
  for (int64_t i = 0; i < spatial(); ++i) {
    Interval cells = windows[i].reads(out[size_t(i)]);
    const int64_t end = block[size_t(i)].hi;
    // No further window fits there; copying the others into an image of their own takes longer.
    const bool more = !cells.empty() && end > cells.hi;
    if (more && end - cells.hi < windows[i].stride) cells.hi = end;
    list.push_back(cells);
  }
  return list;
}

at::Tensor Pooling::padded(const LocalArgs& in, const std::vector<Interval>& cover,
                           double value) const {
  Counts counts;
  for (int64_t i = 0; i < spatial(); ++i) {
    counts.push_back(padding_cells(in.range(0, i + 1), cover[size_t(i)]));
  }
  return fit_image(image(in[0]), std::move(counts), value);
}

at::Tensor Pooling::cut(const at::Tensor& x, const LocalArgs& in,
                        const std::vector<Interval>& cover) const {
  Counts counts;
  for (int64_t i = 0; i < spatial(); ++i) {
    const Interval want = in.out_range(i + 1), made = cover[size_t(i)];
    counts.emplace_back(made.lo - want.lo, want.hi - made.hi);
  }
  return back(fit_image(x, std::move(counts), 0));
}

at::Tensor Pooling::plane(const at::Tensor& image, const std::vector<Interval>& cover) const {
  std::vector<int64_t> sizes = {image.size(0), image.size(1)};
  if (spatial() == 1) sizes.push_back(1);
  for (const Interval& cells : cover) sizes.push_back(cells.size());
  return at::empty(sizes, image.options(), at::MemoryFormat::ChannelsLast);
}

at::Tensor Pooling::zeros(const LocalArgs& in) const {
  Shape shape;
  for (int64_t a = 0; a < in[0].dim(); ++a) shape.push_back(in.out_range(a).size());
  return at::zeros(shape, in[0].options());
}

}  // namespace tessera
