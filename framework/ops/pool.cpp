#include <tessera/framework/ops/pool.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/gpu_table.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/internal/window_axis.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Shared part of the pooling operations: the terms of their rules, and the conversion of blocks to
/// and from ATen's layout, which has two spatial axes: a single one becomes (1, s).
struct Pooling {
  Windows windows;

  int64_t spatial() const { return windows.rank; }
  std::string term() const { return spatial() == 1 ? "n ~h c" : "n ~h ~w c"; }
  /// Returns the spatial extents of a shape.
  std::vector<int64_t> extents(const Shape& x) const;
  /// Returns a shape with other spatial extents.
  Shape with_extents(Shape shape, const std::vector<int64_t>& extents) const;
  /// Returns the output's shape. Throws ShapeError naming the operation.
  Shape pooled(std::string_view op, const Spec& x) const;

  /// Converts a block (n, spatial…, c) to ATen's (n, c, h, w), and back to a contiguous one.
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

using Counts = std::vector<std::pair<int64_t, int64_t>>;

/// Cuts or pads the spatial axes of ATen's image.
at::Tensor fit_image(const at::Tensor& image, Counts counts, double value) {
  if (counts.size() == 1) counts.insert(counts.begin(), {0, 0});
  return crop_or_pad(image, 2, counts, value);
}

std::vector<int64_t> Pooling::extents(const Shape& x) const {
  return {x.begin() + 1, x.begin() + 1 + spatial()};
}

Shape Pooling::with_extents(Shape shape, const std::vector<int64_t>& extents) const {
  std::copy(extents.begin(), extents.end(), shape.begin() + 1);
  return shape;
}

Shape Pooling::pooled(std::string_view op, const Spec& x) const {
  if (spatial() > 2) {
    throw ShapeError(std::string(op), "x must have 1 or 2 spatial axes", str(spatial()), "");
  }
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
  return at::empty(sizes, image.options(), at::MemoryFormat::ChannelsLast);
}

at::Tensor Pooling::zeros(const LocalArgs& in) const {
  Shape shape;
  for (int64_t a = 0; a < in[0].dim(); ++a) shape.push_back(in.out_range(a).size());
  return at::zeros(shape, in[0].options());
}

/// Converts row-major positions in an image of width `width` to an image of `extents` and width
/// `to_width`: `from` is added to their coordinates, which are clamped to `extents`.
at::Tensor reindexed(const at::Tensor& positions, const std::vector<int64_t>& from, int64_t width,
                     const std::vector<int64_t>& extents, int64_t to_width) {
  const bool same = width == to_width || extents.size() == 1;
  if (same && std::all_of(from.begin(), from.end(), [](int64_t n) { return n == 0; })) {
    return positions;
  }
  if (extents.size() == 1) return (positions + from[0]).clamp(0, extents[0] - 1);
  const at::Tensor row = positions.div(width, "floor"), column = positions - row * width;
  return (row + from[0]).clamp(0, extents[0] - 1) * to_width +
         (column + from[1]).clamp(0, extents[1] - 1);
}

/// Returns the image in a memory format that ATen's max pooling supports. For channels-last float64
/// images, ATen's GPU kernel places the values after an int32 array in shared memory, at an address
/// that may not be a multiple of 8; contiguous images use another kernel.
at::Tensor for_max_pool(at::Tensor x) {
  const bool misaligned = x.is_cuda() && x.scalar_type() == at::kDouble;
  return misaligned ? x.clone(at::MemoryFormat::Contiguous) : x;
}

struct MaxPoolOp : Pooling {
  static constexpr std::string_view name = "max_pool";
  auto attributes() const { return std::tie(windows); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    const Shape y = pooled(name, in[0]);
    return {{y, in[0].dtype}, {y, at::kLong}};
  }
  Rule rule(const Specs&) const { return Rule::parse(term() + " -> " + term() + " , " + term()); }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows.reads(axis - 1, out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    const std::vector<Interval> intervals = read_intervals(out_ranges(in), in_ranges(in, 0));
    const at::Tensor x =
        for_max_pool(padded(in, intervals, -std::numeric_limits<double>::infinity()));
    const auto [values, positions] = at::max_pool2d_with_indices(x, sizes(), strides());
    std::vector<int64_t> from;
    for (const Interval& interval : intervals) from.push_back(interval.lo);
    const std::vector<int64_t> extents = this->extents(in.spec(0).shape);
    return {from_image(values),
            from_image(reindexed(positions, from, x.size(-1), extents, extents.back()))};
  }
  static constexpr Saves saves = outputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<MaxPoolOp> samples() {
    const auto of = [](const Shape& x, const std::vector<WindowAxis>& axes) {
      return Sample<MaxPoolOp>{{{.shape = x, .distinct = true}}, {{axes}}};
    };
    return {of({2, 5, 6, 2}, {{2, 2}, {2, 2}}),
            of({1, 7, 5, 1}, {{3, 2, 1, 1, 1}, {3, 1, 1, 0, 1}}), of({2, 9, 2}, {{2, 4}}),
            of({1, 6, 1}, {{5, 1, 1, 2, 2}}), of({0, 4, 4, 1}, {{2}, {2}})};
  }
};

struct MaxPoolGradOp : Pooling {
  static constexpr std::string_view name = "max_pool_grad";
  std::vector<int64_t> extents;
  auto attributes() const { return std::tie(windows, extents); }

  Specs infer(const Specs& in) const { return {{with_extents(in[0].shape, extents), in[0].dtype}}; }
  Rule rule(const Specs&) const { return Rule::parse(term() + " , " + term() + " -> " + term()); }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows[axis - 1].readers(out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    if (in[0].numel() == 0) return {zeros(in)};
    const std::vector<Interval> intervals = read_intervals(in_ranges(in, 0), out_ranges(in));
    std::vector<int64_t> from, image_extents;
    for (const Interval& interval : intervals) {
      from.push_back(-interval.lo);
      image_extents.push_back(interval.size());
    }
    const at::Tensor dy = to_image(wide_on_cpu(in[0]));
    const at::Tensor positions =
        reindexed(to_image(in[1]), from, extents.back(), image_extents, image_extents.back());
    const at::Tensor dx = at::max_pool2d_with_indices_backward(
        dy, empty_image(dy, intervals), sizes(), strides(), {0, 0}, {1, 1}, false, positions);
    return {crop_to_output(dx, in, intervals)};
  }
  /// A single window, in which any position may be that of the maximum.
  static Samples<MaxPoolGradOp> samples() {
    const SampleInput dy = {{2, 1, 1, 2}};
    const SampleInput positions = {.shape = dy.shape, .dtype = at::kLong, .lo = 0, .hi = 6};
    const std::vector<WindowAxis> axes = {{3, 2}, {2}};
    return {{{dy, positions}, {{axes}, {3, 2}}}};
  }
};

Grads MaxPoolOp::gradient(const Saved& saved, const Cotangents& dy, Needs) const {
  return {run_op(MaxPoolGradOp{{windows}, extents(saved.shape(0))}, {dy[0], saved.out(1)})};
}

/// Returns (window size) / (elements of x in the window) for the outputs `out` of an axis, with the
/// dtype and on the device of `like`.
at::Tensor weights(const WindowAxis& axis, Interval out, int64_t input, const at::Tensor& like) {
  const auto on_host = [&] {
    std::vector<double> list;
    for (int64_t o = out.lo; o < out.hi; ++o) {
      const Interval elements = intersect(axis.reads({o, o + 1}), {0, input});
      list.push_back(double(axis.size) / double(std::max<int64_t>(1, elements.size())));
    }
    return at::tensor(list, at::kDouble);
  };
  return cached_table("avg_pool", {axis.size, axis.stride, axis.before, out.lo, out.hi, input},
                      like.options(), on_host);
}

struct Averaging : Pooling {
  bool has_padding() const {
    bool any = false;
    for (int64_t i = 0; i < spatial(); ++i) any = any || windows[i].before || windows[i].after;
    return any;
  }
  /// Turns means that count padding as zeros into means without padding.
  at::Tensor corrected(at::Tensor y, const std::vector<Interval>& out,
                       const std::vector<int64_t>& x) const {
    if (!has_padding()) return y;
    for (int64_t i = 0; i < spatial(); ++i) {
      std::vector<int64_t> shape(size_t(y.dim()), 1);
      shape[size_t(y.dim() - spatial() + i)] = out[size_t(i)].size();
      y = y * weights(windows[i], out[size_t(i)], x[size_t(i)], y).view(shape);
    }
    return y;
  }
};

struct AvgPoolOp : Averaging {
  static constexpr std::string_view name = "avg_pool";
  auto attributes() const { return std::tie(windows); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {{pooled(name, in[0]), in[0].dtype}};
  }
  Rule rule(const Specs&) const { return Rule::parse(term() + " -> " + term()); }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows.reads(axis - 1, out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    const std::vector<Interval> out = out_ranges(in);
    const at::Tensor x = padded(in, read_intervals(out, in_ranges(in, 0)), 0);
    const at::Tensor y = at::avg_pool2d(x, sizes(), strides());
    return {from_image(corrected(y, out, extents(in.spec(0).shape)))};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<AvgPoolOp> samples() {
    const auto of = [](const Shape& x, const std::vector<WindowAxis>& axes) {
      return Sample<AvgPoolOp>{{{x}}, {{{axes}}}};
    };
    return {of({2, 5, 6, 2}, {{2, 2}, {2, 2}}),
            of({1, 7, 5, 1}, {{3, 2, 1, 1, 1}, {3, 1, 1, 0, 1}}), of({2, 9, 2}, {{2, 4}}),
            of({1, 6, 1}, {{5, 1, 1, 2, 2}}), of({0, 4, 4, 1}, {{2}, {2}})};
  }
};

struct AvgPoolGradOp : Averaging {
  static constexpr std::string_view name = "avg_pool_grad";
  std::vector<int64_t> extents;
  auto attributes() const { return std::tie(windows, extents); }

  Specs infer(const Specs& in) const { return {{with_extents(in[0].shape, extents), in[0].dtype}}; }
  Rule rule(const Specs&) const { return Rule::parse(term() + " -> " + term()); }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows[axis - 1].readers(out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    if (in[0].numel() == 0) return {zeros(in)};
    const std::vector<Interval> out = in_ranges(in, 0),
                                intervals = read_intervals(out, out_ranges(in));
    const at::Tensor dy = corrected(to_image(wide_on_cpu(in[0])), out, extents)
                              .contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor dx = at::avg_pool2d_backward(dy, empty_image(dy, intervals), sizes(),
                                                  strides(), {0, 0}, false, true, {});
    return {crop_to_output(dx, in, intervals)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dx, Needs) const {
    return {run_op(AvgPoolOp{{{windows}}}, {dx[0]})};
  }
  static Samples<AvgPoolGradOp> samples() {
    const auto of = [](const Shape& dy, const std::vector<WindowAxis>& axes,
                       const std::vector<int64_t>& x) {
      return Sample<AvgPoolGradOp>{{{dy}}, {{{axes}}, x}};
    };
    return {of({2, 2, 3, 2}, {{2, 2}, {2, 2}}, {5, 6}), of({2, 2, 2}, {{2, 4}}, {9})};
  }
};

Grads AvgPoolOp::gradient(const Saved& saved, const Cotangents& dy, Needs) const {
  return {run_op(AvgPoolGradOp{{{windows}}, extents(saved.shape(0))}, {dy[0]})};
}

TESSERA_REGISTER_OP(MaxPoolOp);
TESSERA_REGISTER_OP(MaxPoolGradOp);
TESSERA_REGISTER_OP(AvgPoolOp);
TESSERA_REGISTER_OP(AvgPoolGradOp);

}  // namespace

namespace ops {

std::pair<DTensor, DTensor> max_pool_with_positions(const DTensor& x,
                                                    const std::vector<WindowAxis>& axes) {
  const MaxPoolOp op{{axes}};
  std::vector<DTensor> both =
      dispatch(op_info<MaxPoolOp>(), &op, attribute_hash(op), std::span(&x, 1));
  return {both[0], both[1]};
}

DTensor max_pool(const DTensor& x, const std::vector<WindowAxis>& axes) {
  return max_pool_with_positions(x, axes).first;
}

DTensor avg_pool(const DTensor& x, const std::vector<WindowAxis>& axes) {
  return run_op(AvgPoolOp{{{axes}}}, {x});
}

}  // namespace ops

}  // namespace tessera
