#include <tessera/framework/ops/conv.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/convolution.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ConvOp : Convolution {
  static constexpr std::string_view name = "conv";
  auto attributes() const { return std::tie(windows, grouped); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    return {{conv_shape(name, in), in[0].dtype}};
  }
  Rule rule(const Specs&) const {
    return Rule::parse(image_term("c") + " , " + kernel_term() + " -> " + image_term("o"));
  }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows.reads(axis - 1, out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    load_gpus();
    const int64_t groups = Convolution::groups(in[0]);
    Local local = Convolution::local();
    std::vector<Interval> out;
    for (int64_t i = 0; i < spatial(); ++i) out.push_back(in.out_range(i + 1));
    const at::Tensor x = padded(in, out, local);
    return {image_of(at::convolution(x, filters(in[1]), {}, local.stride, local.padding,
                                     local.dilation, false, local.output_padding, groups),
                     groups)};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const;
  static Samples<ConvOp> samples();
};

struct ConvTransposeOp : Convolution {
  static constexpr std::string_view name = "conv_transpose";
  std::vector<int64_t> extents;
  auto attributes() const { return std::tie(windows, grouped, extents); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    check_floating(name, in[0]);
    const Shape &y = in[0].shape, &kernel = in[1].shape;
    const size_t r = size_t(spatial());
    Shape x = {y[0]};
    x.insert(x.end(), extents.begin(), extents.end());
    if (grouped) x.push_back(y[r + 1]);
    x.push_back(kernel[r]);
    check_windows(name, windows, {x, in[0].dtype}, channel_axes());
    check_channels(name, y.back(), kernel.back(), in);
    if (grouped) check_channels(name, y[r + 1], kernel[r + 1], in);
    for (size_t i = 0; i < r; ++i) {
      const int64_t expected = windows[int64_t(i)].outputs(extents[i]);
      if (y[i + 1] == expected) continue;
      throw ShapeError(std::string(name), str("spatial axis ", i, " has ", expected, " outputs"),
                       str(y[i + 1]), "choose extents that give this many outputs");
    }
    return {{x, in[0].dtype}};
  }
  Rule rule(const Specs&) const {
    return Rule::parse(image_term("o") + " , " + kernel_term() + " -> " + image_term("c"));
  }
  Interval window(size_t, int64_t axis, Interval out, const Specs& in) const {
    return windows[axis - 1].readers(out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    load_gpus();
    const at::Tensor &y = in[0], weight = filters(in[1]);
    const int64_t groups = Convolution::groups(y);
    Local local = Convolution::local();
    std::vector<std::pair<int64_t, int64_t>> cut;
    std::vector<int64_t> sizes = {y.size(0), groups * in[1].size(spatial())};
    for (int64_t i = 0; i < spatial(); ++i) {
      const Interval target = in.out_range(i + 1), produced = windows[i].reads(in.range(0, i + 1));
      sizes.push_back(target.size());
      // Elements to be cut off on both sides are not computed.
      const int64_t both = std::clamp<int64_t>(target.lo - produced.lo, 0,
                                               std::max<int64_t>(0, produced.hi - target.hi));
      local.padding[size_t(i)] = both;
      cut.emplace_back(produced.lo + both - target.lo, target.hi - (produced.hi - both));
    }
    // No window covers this block: the stride exceeds the window.
    if (y.numel() == 0) return {image_of(at::zeros(sizes, y.options()), groups)};
    const bool slow = is_slow(y, groups, in[1].size(spatial()));
    const at::ScalarType dtype = slow ? at::kFloat : y.scalar_type();
    const at::Tensor x =
        at::convolution(channels_first(y.to(dtype), spatial()), weight.to(dtype), {}, local.stride,
                        local.padding, local.dilation, true, local.output_padding, groups);
    return {image_of(crop_or_pad(x.to(y.scalar_type()), 2, cut), groups)};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs needs) const;
  static Samples<ConvTransposeOp> samples();

 private:
  /// Whether float32 takes less time: oneDNN has no kernel for many groups with strides in float16
  /// and bfloat16, and its plain loop takes up to 20 times as long.
  bool is_slow(const at::Tensor& y, int64_t groups, int64_t channels) const {
    const bool strided = std::any_of(windows.axes.begin(), windows.axes.end(),
                                     [](const WindowAxis& axis) { return axis.stride > 1; });
    return y.is_cpu() && at::isReducedFloatingType(y.scalar_type()) && groups > 1 &&
           channels <= few_channels && strided;
  }
  static constexpr int64_t few_channels = 2;
};

struct ConvKernelGradOp : Convolution {
  static constexpr std::string_view name = "conv_kernel_grad";
  auto attributes() const { return std::tie(windows, grouped); }

  Specs infer(const Specs& in) const {
    check_same_dtype(name, in);
    const size_t r = size_t(spatial());
    Shape kernel;
    for (size_t i = 0; i < r; ++i) kernel.push_back(windows[int64_t(i)].size);
    kernel.push_back(in[0].shape.back());
    if (grouped) kernel.push_back(in[0].shape[r + 1]);
    kernel.push_back(in[1].shape.back());
    return {{kernel, in[0].dtype}};
  }
  Rule rule(const Specs&) const {
    return Rule::parse(image_term("c") + " , " + image_term("o") + " -> " + kernel_term());
  }
  Interval window(size_t input, int64_t axis, Interval out, const Specs& in) const {
    return input == 1 ? out : windows.reads(axis - 1, out, in[0].shape[size_t(axis)]);
  }
  Tensors forward(const LocalArgs& in) const {
    load_gpus();
    const int64_t groups = Convolution::groups(in[0]);
    Local local = Convolution::local();
    std::vector<Interval> out;
    std::vector<int64_t> sizes = {groups * in[1].size(-1), in[0].size(-1)};
    for (int64_t i = 0; i < spatial(); ++i) {
      out.push_back(in.range(1, i + 1));
      sizes.push_back(windows[i].size);
    }
    const at::Tensor x = padded(in, out, local);
    const auto grads = at::convolution_backward(
        channels_first(in[1], spatial()), x, like_kernel(sizes, x.options()), {}, local.stride,
        local.padding, local.dilation, false, local.output_padding, groups, {false, true, false});
    return {kernel_of(std::get<1>(grads), groups)};
  }
  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dk, Needs needs) const;
  static Samples<ConvKernelGradOp> samples();
};

std::vector<int64_t> spatial_of(const Shape& x, int64_t spatial) {
  return {x.begin() + 1, x.begin() + 1 + spatial};
}

DTensor transposed(const Convolution& convolution, const DTensor& y, const DTensor& kernel,
                   const Shape& x) {
  return run_op(ConvTransposeOp{convolution, spatial_of(x, convolution.spatial())}, {y, kernel});
}

Grads ConvOp::gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
  Grads grads(2);
  if (needs[0]) grads[0] = transposed(*this, dy[0], saved.in(1), saved.shape(0));
  if (needs[1]) grads[1] = run_op(ConvKernelGradOp{*this}, {saved.in(0), dy[0]});
  return grads;
}

Grads ConvTransposeOp::gradient(const Saved& saved, const Cotangents& dx, Needs needs) const {
  Grads grads(2);
  if (needs[0]) grads[0] = run_op(ConvOp{*this}, {dx[0], saved.in(1)});
  if (needs[1]) grads[1] = run_op(ConvKernelGradOp{*this}, {dx[0], saved.in(0)});
  return grads;
}

Grads ConvKernelGradOp::gradient(const Saved& saved, const Cotangents& dk, Needs needs) const {
  Grads grads(2);
  if (needs[0]) grads[0] = transposed(*this, saved.in(1), dk[0], saved.shape(0));
  if (needs[1]) grads[1] = run_op(ConvOp{*this}, {saved.in(0), dk[0]});
  return grads;
}

using Axes = std::vector<WindowAxis>;

template <class Op>
Sample<Op> sample(const Shape& a, const Shape& b, const Op& op) {
  return {{{a}, {b}}, op};
}
Convolution over(const Axes& axes, bool grouped = false) { return {Windows(axes), grouped}; }

/// Strides, padding on both sides, and a row that no window reads.
const Axes strided = {{3, 2, 1, 0, 1}, {3, 1, 1, 1, 1}};
/// An even window size, dilation, and different padding on both sides.
const Axes even = {{4, 2, 2, 3, 2}};

Samples<ConvOp> ConvOp::samples() {
  const auto of = [](const Shape& x, const Shape& kernel, const Axes& axes, bool grouped = false) {
    return sample(x, kernel, ConvOp{over(axes, grouped)});
  };
  return {of({2, 5, 6, 2}, {3, 2, 2, 3}, {{3}, {2}}), of({1, 8, 4, 1}, {3, 3, 1, 2}, strided),
          of({2, 9, 3}, {4, 3, 2}, even),
          // A window over several shards, a stride beyond the window, windows only on padding.
          of({1, 8, 1}, {7, 1, 1}, {{7, 1, 1, 3, 3}}), of({2, 9, 1}, {2, 1, 2}, {{2, 4}}),
          of({1, 3, 1}, {2, 1, 1}, {{2, 1, 1, 3, 4}}), of({1, 5, 2, 3}, {2, 3, 2, 2}, {{2}}, true),
          of({1, 4, 3, 3, 1}, {3, 2, 1, 3, 2}, {{3, 1, 1, 1, 1}, {2}}, true),
          of({1, 3, 3, 2, 1}, {2, 2, 1, 1, 2}, {{2}, {2, 1, 1, 1, 0}, {1}})};
}

Samples<ConvTransposeOp> ConvTransposeOp::samples() {
  const auto of = [](const Shape& y, const Shape& kernel, const Axes& axes, const Shape& extents,
                     bool grouped = false) {
    return sample(y, kernel, ConvTransposeOp{over(axes, grouped), extents});
  };
  return {of({2, 3, 5, 3}, {3, 2, 2, 3}, {{3}, {2}}, {5, 6}),
          of({1, 4, 4, 2}, {3, 3, 1, 2}, strided, {8, 4}), of({2, 4, 2}, {4, 3, 2}, even, {9}),
          of({2, 2, 2}, {2, 1, 2}, {{2, 4}}, {9}),
          of({1, 4, 2, 2}, {2, 3, 2, 2}, {{2}}, {5}, true)};
}

Samples<ConvKernelGradOp> ConvKernelGradOp::samples() {
  const auto of = [](const Shape& x, const Shape& dy, const Axes& axes, bool grouped = false) {
    return sample(x, dy, ConvKernelGradOp{over(axes, grouped)});
  };
  return {of({2, 5, 6, 2}, {2, 3, 5, 3}, {{3}, {2}}), of({1, 8, 4, 1}, {1, 4, 4, 2}, strided),
          of({2, 9, 1}, {2, 2, 2}, {{2, 4}}), of({1, 5, 2, 3}, {1, 4, 2, 2}, {{2}}, true)};
}

TESSERA_REGISTER_OP(ConvOp);
TESSERA_REGISTER_OP(ConvTransposeOp);
TESSERA_REGISTER_OP(ConvKernelGradOp);

/// Returns a convolution with the kernel's window sizes, grouped if the kernel has a group axis.
/// Throws ShapeError for a kernel of another rank.
Convolution convolution_for(std::string_view op, std::vector<WindowAxis>&& axes,
                            const Shape& kernel) {
  const size_t r = axes.size();
  if (kernel.size() != r + 2 && kernel.size() != r + 3) {
    throw ShapeError(std::string(op),
                     str("a kernel has ", r,
                         " window axes and 2 of channels, or 3"
                         " in groups"),
                     to_string(kernel), "reshape it");
  }
  for (size_t i = 0; i < r; ++i) axes[i].size = kernel[i];
  return {Windows(axes), kernel.size() == r + 3};
}

}  // namespace

const Convolution* detail::convolution_of(const OpInfo& info, const void* op) {
  return &info == &op_info<ConvOp>() ? static_cast<const ConvOp*>(op) : nullptr;
}

namespace ops {

DTensor conv(const DTensor& x, const DTensor& kernel, std::vector<WindowAxis> axes) {
  const auto [in, weights] = in_floating_dtype(x, kernel);
  return run_op(ConvOp{convolution_for("conv", std::move(axes), kernel.shape())}, {in, weights});
}

std::vector<int64_t> conv_kernel_order(int64_t spatial) {
  std::vector<int64_t> order = {spatial + 1};
  for (int64_t i = 0; i <= spatial; ++i) order.push_back(i);
  return order;
}

DTensor depthwise_conv(const DTensor& x, const DTensor& kernel,
                       const std::vector<WindowAxis>& axes) {
  // Treats every channel as a group.
  const auto spatial = static_cast<int64_t>(axes.size());
  const DTensor y = conv(expand_dims(x, x.rank()), expand_dims(kernel, spatial), axes);
  return flatten(y, spatial + 1);
}

DTensor separable_conv(const DTensor& x, const DTensor& depthwise_kernel,
                       const DTensor& pointwise_kernel, const std::vector<WindowAxis>& axes) {
  const DTensor y = depthwise_conv(x, depthwise_kernel, axes);
  return conv(y, pointwise_kernel, std::vector<WindowAxis>(axes.size()));
}

DTensor conv_transpose(const DTensor& y, const DTensor& kernel, std::vector<WindowAxis> axes,
                       const std::vector<int64_t>& extents) {
  return run_op(
      ConvTransposeOp{convolution_for("conv_transpose", std::move(axes), kernel.shape()), extents},
      {y, kernel});
}

DTensor conv_kernel_grad(const DTensor& x, const DTensor& dy, const std::vector<WindowAxis>& axes) {
  const bool grouped = x.rank() == static_cast<int64_t>(axes.size()) + 3;
  return run_op(ConvKernelGradOp{{Windows(axes), grouped}}, {x, dy});
}

}  // namespace ops

}  // namespace tessera
