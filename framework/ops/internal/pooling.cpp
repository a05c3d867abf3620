#include <tessera/framework/ops/internal/pooling.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

namespace {

using Counts = std::vector<std::pair<int64_t, int64_t>>;

/// Cuts or pads the spatial axes of ATen's image.
at::Tensor fit_image(const at::Tensor& image, Counts counts, double value) {
  if (counts.size() == 1) counts.insert(counts.begin(), {0, 0});
  return crop_or_pad(image, 2, counts, value);
}

}  // namespace

std::string Pooling::term() const {
  return spatial() == 1 ? "n ~h c" : is_volume() ? "n ~d ~h ~w c" : "n ~h ~w c";
}

std::vector<int64_t> Pooling::extents(const Shape& x) const {
  return {x.begin() + 1, x.begin() + 1 + spatial()};
}

Shape Pooling::with_extents(Shape shape, const std::vector<int64_t>& extents) const {
  std::copy(extents.begin(), extents.end(), shape.begin() + 1);
  return shape;
}

Shape Pooling::pooled(std::string_view op, const Spec& x) const {
  check_windows(op, windows, x, 1);
  for (int64_t i = 0; i < spatial(); ++i) {
    if (windows[i].dilation == 1) continue;
    throw ShapeError(std::string(op), "dilation must be 1", str(windows[i].dilation),
                     "leave dilation at its default");
  }
  Shape y = x.shape;
  for (int64_t i = 0; i < spatial(); ++i) y[size_t(i) + 1] = windows[i].outputs(y[size_t(i) + 1]);
  return y;
}

at::Tensor Pooling::to_image(const at::Tensor& x) const {
  const at::Tensor y = channels_first(x, spatial());
  return spatial() == 1 ? y.unsqueeze(2) : y;
}

at::Tensor Pooling::from_image(const at::Tensor& y) const {
  return channels_last(spatial() == 1 ? y.squeeze(2) : y);
}

std::vector<int64_t> Pooling::sizes() const {
  std::vector<int64_t> list(spatial() == 1 ? 1 : 0, 1);
  for (int64_t i = 0; i < spatial(); ++i) list.push_back(windows[i].size);
  return list;
}

std::vector<int64_t> Pooling::strides() const {
  std::vector<int64_t> list(spatial() == 1 ? 1 : 0, 1);
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

std::vector<Interval> Pooling::read_intervals(const std::vector<Interval>& out,
                                              const std::vector<Interval>& block) const {
  std::vector<Interval> list;
  for (int64_t i = 0; i < spatial(); ++i) {
    Interval interval = windows[i].reads(out[size_t(i)]);
    const int64_t end = block[size_t(i)].hi;
    // No further window fits there, and cutting the end off would copy the image.
    const bool more = !interval.empty() && end > interval.hi;
    if (more && end - interval.hi < windows[i].stride) interval.hi = end;
    list.push_back(interval);
  }
  return list;
}

at::Tensor Pooling::padded(const LocalArgs& in, const std::vector<Interval>& intervals,
                           double value) const {
  Counts counts;
  for (int64_t i = 0; i < spatial(); ++i) {
    counts.push_back(padding_counts(in.range(0, i + 1), intervals[size_t(i)]));
  }
  return fit_image(to_image(in[0]), std::move(counts), value);
}

at::Tensor Pooling::crop_to_output(const at::Tensor& x, const LocalArgs& in,
                                   const std::vector<Interval>& intervals) const {
  Counts counts;
  for (int64_t i = 0; i < spatial(); ++i) {
    const Interval target = in.out_range(i + 1), produced = intervals[size_t(i)];
    counts.emplace_back(produced.lo - target.lo, target.hi - produced.hi);
  }
  return from_image(fit_image(x, std::move(counts), 0)).to(in[0].scalar_type());
}

at::Tensor Pooling::empty_image(const at::Tensor& image,
                                const std::vector<Interval>& intervals) const {
  std::vector<int64_t> sizes = {image.size(0), image.size(1)};
  if (spatial() == 1) sizes.push_back(1);
  for (const Interval& interval : intervals) sizes.push_back(interval.size());
  return at::empty(sizes, image.options(), memory_format());
}

at::Tensor Pooling::zeros(const LocalArgs& in) const {
  Shape shape;
  for (int64_t a = 0; a < in[0].dim(); ++a) shape.push_back(in.out_range(a).size());
  return at::zeros(shape, in[0].options());
}

at::Tensor reindexed(const at::Tensor& positions, const std::vector<int64_t>& from,
                     const std::vector<int64_t>& of, const std::vector<int64_t>& to) {
  // The first axis' extent is no factor of a position.
  const bool same = std::equal(of.begin() + 1, of.end(), to.begin() + 1);
  if (same && std::all_of(from.begin(), from.end(), [](int64_t n) { return n == 0; })) {
    return positions;
  }
  at::Tensor rest = positions, moved;
  int64_t step = 1;
  for (size_t i = of.size(); i-- > 0;) {
    const at::Tensor before = i > 0 ? rest.div(of[i], "floor") : at::Tensor();
    const at::Tensor here = i > 0 ? rest - before * of[i] : rest;
    const at::Tensor there = (here + from[i]).clamp(0, to[i] - 1);
    moved = moved.defined() ? there * step + moved : there;
    step *= to[i];
    rest = before;
  }
  return moved;
}

}  // namespace tessera::detail
