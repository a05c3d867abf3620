#include <tessera/framework/ops/pool.hpp>

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/ops/broadcast.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/pooling.hpp>

namespace tessera {
namespace {

/// Positions among `extents` of cells counted from `from` in an image `width` wide, or back.
at::Tensor moved(const at::Tensor& positions, const std::vector<int64_t>& from, int64_t width,
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

struct MaxPoolOp : Pooling {
  static constexpr std::string_view name = "max_pool";
  auto attributes() const { return std::tie(windows); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    const Shape y = pooled(name, in[0]);
    return {{y, in[0].dtype}, {y, at::kLong}};
  }
  Rule rule(const Specs&) const {
    return Rule::parse(term() + " -> " + term() + " , " + term());
  }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows.reads(axis - 1, out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    const std::vector<Interval> cover = covered(out_ranges(in), in_ranges(in, 0));
    const at::Tensor x = padded(in, cover, -std::numeric_limits<double>::infinity());
    const auto [values, positions] = at::max_pool2d_with_indices(x, sizes(), strides());
    std::vector<int64_t> from;
    for (const Interval& cells : cover) from.push_back(cells.lo);
    const std::vector<int64_t> extents = this->extents(in.spec(0).shape);
    return {back(values), back(moved(positions, from, x.size(-1), extents, extents.back()))};
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

  Specs infer(const Specs& in) const { return {{over(in[0].shape, extents), in[0].dtype}}; }
  Rule rule(const Specs&) const {
    return Rule::parse(term() + " , " + term() + " -> " + term());
  }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows[axis - 1].readers(out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    if (in[0].numel() == 0) return {zeros(in)};
    const std::vector<Interval> cover = covered(in_ranges(in, 0), out_ranges(in));
    std::vector<int64_t> from, covers;
    for (const Interval& cells : cover) {
      from.push_back(-cells.lo);
      covers.push_back(cells.size());
    }
    const at::Tensor dy = image(in[0]);
    const at::Tensor positions =
        moved(image(in[1]), from, extents.back(), covers, covers.back());
    const at::Tensor dx = at::max_pool2d_with_indices_backward(
        dy, plane(dy, cover), sizes(), strides(), {0, 0}, {1, 1}, false, positions);
    return {cut(dx, in, cover)};
  }
  /// Of one window, in which any position may have won.
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

/// One over the cells of x in each window of an axis, times the window's size, for outputs from
/// `lo` on.
at::Tensor weights(const WindowAxis& axis, Interval out, int64_t input,
                   const at::TensorOptions& options) {
  std::vector<double> list;
  for (int64_t o = out.lo; o < out.hi; ++o) {
    const Interval cells = intersect(axis.reads({o, o + 1}), {0, input});
    list.push_back(double(axis.size) / double(std::max<int64_t>(1, cells.size())));
  }
  return at::tensor(list, options);
}

struct Averaging : Pooling {
  bool has_padding() const {
    bool any = false;
    for (int64_t i = 0; i < spatial(); ++i) any = any || windows[i].before || windows[i].after;
    return any;
  }
  /// Means that took padding for zeros, made means of cells alone.
  at::Tensor corrected(at::Tensor y, const std::vector<Interval>& out,
                       const std::vector<int64_t>& x) const {
    if (!has_padding()) return y;
    for (int64_t i = 0; i < spatial(); ++i) {
      std::vector<int64_t> shape(size_t(y.dim()), 1);
      shape[size_t(y.dim() - spatial() + i)] = out[size_t(i)].size();
      y = y * weights(windows[i], out[size_t(i)], x[size_t(i)], y.options()).view(shape);
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
    const at::Tensor x = padded(in, covered(out, in_ranges(in, 0)), 0);
    const at::Tensor y = at::avg_pool2d(x, sizes(), strides());
    return {back(corrected(y, out, extents(in.spec(0).shape)))};
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

  Specs infer(const Specs& in) const { return {{over(in[0].shape, extents), in[0].dtype}}; }
  Rule rule(const Specs&) const { return Rule::parse(term() + " -> " + term()); }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows[axis - 1].readers(out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    if (in[0].numel() == 0) return {zeros(in)};
    const std::vector<Interval> out = in_ranges(in, 0), cover = covered(out, out_ranges(in));
    const at::Tensor dy = corrected(image(in[0]), out, extents).contiguous(
        at::MemoryFormat::ChannelsLast);
    const at::Tensor dx = at::avg_pool2d_backward(dy, plane(dy, cover), sizes(), strides(), {0, 0},
                                                  false, true, {});
    return {cut(dx, in, cover)};
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
