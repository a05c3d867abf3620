#include <tessera/framework/ops/pool.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/gpu_table.hpp>
#include <tessera/framework/ops/internal/pooling.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/internal/window_axis.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

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
    const auto [values, positions] = is_volume()
                                         ? at::max_pool3d_with_indices(x, sizes(), strides())
                                         : at::max_pool2d_with_indices(x, sizes(), strides());
    std::vector<int64_t> from;
    for (const Interval& interval : intervals) from.push_back(interval.lo);
    const std::vector<int64_t> image(x.sizes().end() - spatial(), x.sizes().end());
    return {from_image(values),
            from_image(reindexed(positions, from, image, extents(in.spec(0).shape)))};
  }
  static constexpr Saves saves = outputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<MaxPoolOp> samples() {
    const auto of = [](const Shape& x, const std::vector<WindowAxis>& axes) {
      return Sample<MaxPoolOp>{{{.shape = x, .distinct = true}}, {{axes}}};
    };
    return {of({2, 5, 6, 2}, {{2, 2}, {2, 2}}),
            of({1, 7, 5, 1}, {{3, 2, 1, 1, 1}, {3, 1, 1, 0, 1}}),
            of({2, 9, 2}, {{2, 4}}),
            of({1, 6, 1}, {{5, 1, 1, 2, 2}}),
            of({1, 6, 7, 1}, {{2, 2}, {2, 2}}),
            of({0, 4, 4, 1}, {{2}, {2}}),
            of({1, 5, 4, 3, 2}, {{3, 2, 1, 1, 1}, {2, 2}, {2, 1, 1, 0, 1}})};
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
    // ATen's kernel of volumes does not check, and would read beyond fewer positions.
    if (in[0].sizes() != in[1].sizes()) {
      throw ShapeError(std::string(name), "each element of dy has a position",
                       str(in[1].numel(), " for ", in[0].numel()), "give both one layout");
    }
    const std::vector<Interval> intervals = read_intervals(in_ranges(in, 0), out_ranges(in));
    std::vector<int64_t> from, image;
    for (const Interval& interval : intervals) {
      from.push_back(-interval.lo);
      image.push_back(interval.size());
    }
    const at::Tensor dy = to_image(wide_on_cpu(in[0]));
    const at::Tensor positions = reindexed(to_image(in[1]), from, extents, image);
    const auto backward =
        is_volume() ? at::max_pool3d_with_indices_backward : at::max_pool2d_with_indices_backward;
    const std::vector<int64_t> padding(sizes().size(), 0), dilation(sizes().size(), 1);
    const at::Tensor dx = backward(dy, empty_image(dy, intervals), sizes(), strides(), padding,
                                   dilation, false, positions);
    return {crop_to_output(dx, in, intervals)};
  }
  static constexpr Saves saves = inputs(1);
  /// Takes the elements at the positions, which count the elements of all spatial axes.
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs) const {
    const Shape &x = dx[0].shape(), &y = saved.shape(0);
    const auto rows = [](const DTensor& image, const Shape& shape) {
      const int64_t elements = numel(Shape(shape.begin() + 1, shape.end() - 1));
      return ops::reshape(image, {shape.front(), elements, shape.back()});
    };
    const DTensor taken = ops::take_along_axis(rows(dx[0], x), rows(saved.in(1), y), 1);
    return {ops::reshape(taken, y), DTensor()};
  }
  /// A single window, in which any position may be that of the maximum.
  static Samples<MaxPoolGradOp> samples() {
    const SampleInput dy = {{2, 1, 1, 2}};
    const SampleInput positions = {.shape = dy.shape, .dtype = at::kLong, .lo = 0, .hi = 6};
    const std::vector<WindowAxis> axes = {{3, 2}, {2}}, volume = {{2}, {3}, {2}};
    const SampleInput volume_dy = {{2, 1, 1, 1, 1}};
    const SampleInput volume_positions = {
        .shape = volume_dy.shape, .dtype = at::kLong, .lo = 0, .hi = 12};
    return {{{dy, positions}, {{axes}, {3, 2}}},
            {{volume_dy, volume_positions}, {{volume}, {2, 3, 2}}}};
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
    // ATen's CPU kernel of volumes has no float16 and bfloat16.
    const at::Tensor y = is_volume() ? at::avg_pool3d(wide_on_cpu(x), sizes(), strides())
                                     : at::avg_pool2d(x, sizes(), strides());
    return {from_image(corrected(y, out, extents(in.spec(0).shape))).to(in[0].scalar_type())};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<AvgPoolOp> samples() {
    const auto of = [](const Shape& x, const std::vector<WindowAxis>& axes) {
      return Sample<AvgPoolOp>{{{x}}, {{{axes}}}};
    };
    return {of({2, 5, 6, 2}, {{2, 2}, {2, 2}}),
            of({1, 7, 5, 1}, {{3, 2, 1, 1, 1}, {3, 1, 1, 0, 1}}),
            of({2, 9, 2}, {{2, 4}}),
            of({1, 6, 1}, {{5, 1, 1, 2, 2}}),
            of({0, 4, 4, 1}, {{2}, {2}}),
            of({1, 5, 4, 3, 2}, {{3, 2, 1, 1, 1}, {2, 2}, {2, 1, 1, 0, 1}})};
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
    const at::Tensor dy =
        corrected(to_image(wide_on_cpu(in[0])), out, extents).contiguous(memory_format());
    const auto backward = is_volume() ? at::avg_pool3d_backward : at::avg_pool2d_backward;
    const at::Tensor dx = backward(dy, empty_image(dy, intervals), sizes(), strides(),
                                   std::vector<int64_t>(sizes().size(), 0), false, true, {});
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
    return {of({2, 2, 3, 2}, {{2, 2}, {2, 2}}, {5, 6}), of({2, 2, 2}, {{2, 4}}, {9}),
            of({1, 3, 2, 3, 1}, {{3, 2, 1, 1, 1}, {2, 2}, {2, 1, 1, 0, 1}}, {5, 4, 3})};
  }
};

Grads AvgPoolOp::gradient(const Saved& saved, const Cotangents& dy, Needs) const {
  return {run_op(AvgPoolGradOp{{{windows}}, extents(saved.shape(0))}, {dy[0]})};
}

TESSERA_REGISTER_OP(MaxPoolOp);
TESSERA_REGISTER_OP(MaxPoolGradOp);
TESSERA_REGISTER_OP(AvgPoolOp);
TESSERA_REGISTER_OP(AvgPoolGradOp);

using PoolFunction = DTensor (*)(const DTensor&, const std::vector<WindowAxis>&);

/// Pools one axis of (n, spatial…, c) in `size` windows that cover it evenly.
DTensor adaptive_axis(const DTensor& x, int64_t axis, int64_t size, PoolFunction pool) {
  const int64_t extent = x.size(axis);
  if (extent == size) return x;
  // Windows repeat: the next `period` of them are the same, `stride` elements further.
  const int64_t count = std::gcd(extent, size), period = size / count, stride = extent / count;
  std::vector<WindowAxis> axes(size_t(x.rank() - 2));
  std::vector<DTensor> parts;
  for (int64_t i = 0; i < period; ++i) {
    const int64_t begin = i * stride / period, end = ((i + 1) * stride + period - 1) / period;
    axes[size_t(axis) - 1] = {.size = end - begin, .stride = stride};
    const DTensor read = ops::slice(x, axis, begin, (count - 1) * stride + end - begin);
    parts.push_back(pool(read, axes));
  }
  if (period == 1) return parts[0];
  Shape shape = x.shape();
  shape[size_t(axis)] = size;
  return ops::reshape(ops::stack(parts, axis + 1), shape);
}

/// Throws ShapeError naming the operation unless x has elements to pool to these sizes.
void check_adaptive(std::string_view op, const DTensor& x, const std::vector<int64_t>& sizes) {
  const auto spatial = static_cast<int64_t>(sizes.size());
  if (spatial < 1 || spatial > 3 || x.rank() != spatial + 2) {
    throw ShapeError(std::string(op),
                     str("x has a batch axis, ", spatial, " spatial ones (1 to 3) and channels"),
                     to_string(x.shape()), "give one size per spatial axis");
  }
  for (int64_t i = 0; i < spatial; ++i) {
    if (sizes[size_t(i)] >= 1 && x.size(i + 1) >= 1) continue;
    throw ShapeError(std::string(op), "extents are at least 1",
                     str("from ", x.size(i + 1), " to ", sizes[size_t(i)]), "choose another size");
  }
}

/// Pools the last axis first, so that of equal maxima the first in row-major order is found.
DTensor adaptive_pool(DTensor x, const std::vector<int64_t>& sizes, PoolFunction pool) {
  for (size_t i = sizes.size(); i-- > 0;) {
    x = adaptive_axis(x, static_cast<int64_t>(i) + 1, sizes[i], pool);
  }
  return x;
}

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

DTensor adaptive_max_pool(const DTensor& x, const std::vector<int64_t>& sizes) {
  check_adaptive("adaptive_max_pool", x, sizes);
  return adaptive_pool(x, sizes, max_pool);
}

DTensor adaptive_avg_pool(const DTensor& x, const std::vector<int64_t>& sizes) {
  check_adaptive("adaptive_avg_pool", x, sizes);
  // Means of means in float16 and bfloat16 would be rounded after each axis.
  return cast(adaptive_pool(widened(x), sizes, avg_pool), x.dtype());
}

}  // namespace ops

}  // namespace tessera
