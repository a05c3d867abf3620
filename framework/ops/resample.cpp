#include <tessera/framework/ops/resample.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/gpu_table.hpp>

namespace tessera {

using namespace detail;

namespace {

using ops::Interpolation;

double sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

/// Returns the radius of the interpolation kernel in pixels.
double radius(Interpolation method) {
  switch (method) {
    case Interpolation::bilinear:
      return 1;
    case Interpolation::bicubic:
      return 2;
    case Interpolation::lanczos3:
      return 3;
    case Interpolation::lanczos5:
      return 5;
  }
  return 0;
}

/// Returns the weight of a pixel at a distance; bicubic is Keys' kernel with a = -1/2.
double weight(Interpolation method, double distance) {
  const double d = std::abs(distance), r = radius(method);
  if (d >= r) return 0;
  if (method == Interpolation::bilinear) return 1 - d;
  if (method == Interpolation::bicubic) {
    return d <= 1 ? (1.5 * d - 2.5) * d * d + 1 : ((-0.5 * d + 2.5) * d - 4) * d + 2;
  }
  return sinc(d) * sinc(d / r);
}

/// Shared part of both directions: an axis of extent `from` is resized to `to`.
struct Resampling {
  int64_t axis = 0, from = 1, to = 1;
  Interpolation method = Interpolation::bilinear;
  bool antialias = false;

  /// Returns the factor by which antialiasing widens the kernel.
  double stretch() const { return antialias && from > to ? double(from) / double(to) : 1; }
  /// Returns the centre of output pixel i in input pixels.
  double centre(int64_t i) const { return (double(i) + 0.5) * double(from) / double(to) - 0.5; }
  /// Returns the input pixels that output pixel i reads.
  Interval taps(int64_t i) const {
    const double reach = radius(method) * stretch();
    const auto lo = static_cast<int64_t>(std::floor(centre(i) - reach)) + 1;
    const auto hi = static_cast<int64_t>(std::ceil(centre(i) + reach));
    return intersect({lo, hi}, {0, from});
  }
  Interval reads(Interval out) const {
    return out.empty() ? Interval{} : Interval{taps(out.lo).lo, taps(out.hi - 1).hi};
  }
  /// Returns the output pixels that read any of the input pixels `pixels`.
  Interval readers(Interval pixels) const {
    int64_t lo = 0, hi = to;
    while (lo < hi && taps(lo).hi <= pixels.lo) ++lo;
    while (hi > lo && taps(hi - 1).lo >= pixels.hi) --hi;
    return pixels.empty() ? Interval{} : Interval{lo, hi};
  }
  /// Returns the weights (output pixels, input pixels).
  at::Tensor matrix(Interval out, Interval pixels, const at::TensorOptions& options) const {
    return cached_table(
        "resample",
        {from, to, int64_t(method), int64_t(antialias), out.lo, out.hi, pixels.lo, pixels.hi},
        options, [&] { return matrix_on_host(out, pixels); });
  }
  at::Tensor matrix_on_host(Interval out, Interval pixels) const {
    at::Tensor weights = at::zeros({out.size(), pixels.size()}, at::kDouble);
    double* const data = weights.data_ptr<double>();
    for (int64_t i = out.lo; i < out.hi; ++i) {
      const auto of = [&](int64_t c) {
        return weight(method, (double(c) - centre(i)) / stretch());
      };
      const Interval all = taps(i);
      double sum = 0;
      for (int64_t c = all.lo; c < all.hi; ++c) sum += of(c);
      const Interval own = intersect(all, pixels);
      for (int64_t c = own.lo; c < own.hi; ++c) {
        data[(i - out.lo) * pixels.size() + c - pixels.lo] = of(c) / sum;
      }
    }
    return weights;
  }
  /// Multiplies the block's axis by a matrix (in, out).
  Tensors times(const at::Tensor& x, const at::Tensor& matrix) const {
    return {at::matmul(x.movedim(axis, -1), matrix).movedim(-1, axis).contiguous()};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule({in[0]});
    rule.in[0] = rule.out[0];
    rule.factors[size_t(axis)] = FactorKind::window;
    return rule;
  }
  Specs with_extent(const Specs& in, int64_t extent) const {
    Spec out = in[0];
    out.shape[size_t(axis)] = extent;
    return {out};
  }
};

struct ResampleOp : Resampling {
  static constexpr std::string_view name = "resample";
  auto attributes() const { return std::tie(axis, from, to, method, antialias); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return with_extent(in, to);
  }
  Interval window(size_t, int64_t, Interval out, const Specs&) const { return reads(out); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor weights = matrix(in.out_range(axis), in.range(0, axis), in[0].options());
    return times(in[0], weights.t());
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const;
  static Samples<ResampleOp> samples() {
    const auto of = [](const Shape& x, int64_t axis, int64_t to, Interpolation method,
                       bool antialias = false) {
      return Sample<ResampleOp>{{{x}}, {{axis, x[size_t(axis)], to, method, antialias}}};
    };
    return {of({2, 4, 3}, 1, 8, Interpolation::bilinear),
            of({5, 2}, 0, 3, Interpolation::bicubic),
            of({1, 3, 2}, 1, 7, Interpolation::lanczos3),
            of({4}, 0, 6, Interpolation::lanczos5),
            of({2, 3}, 1, 6, Interpolation::bilinear),
            of({9, 2}, 0, 4, Interpolation::bilinear, true),
            of({2, 7}, 1, 3, Interpolation::bicubic, true)};
  }
};

struct ResampleGradOp : Resampling {
  static constexpr std::string_view name = "resample_grad";
  auto attributes() const { return std::tie(axis, from, to, method, antialias); }
  Specs infer(const Specs& in) const { return with_extent(in, from); }
  Interval window(size_t, int64_t, Interval out, const Specs&) const { return readers(out); }
  Tensors forward(const LocalArgs& in) const {
    return times(in[0], matrix(in.range(0, axis), in.out_range(axis), in[0].options()));
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dx, Needs) const {
    return {run_op(ResampleOp{*this}, {dx[0]})};
  }
  static Samples<ResampleGradOp> samples() {
    return {{{{{2, 8, 3}}}, {{1, 4, 8, Interpolation::bilinear}}},
            {{{{3, 2}}}, {{0, 5, 3, Interpolation::bicubic}}},
            {{{{4, 2}}}, {{0, 9, 4, Interpolation::bilinear, true}}}};
  }
};

Grads ResampleOp::gradient(const Saved&, const Cotangents& dy, Needs) const {
  return {run_op(ResampleGradOp{*this}, {dy[0]})};
}

TESSERA_REGISTER_OP(ResampleOp);
TESSERA_REGISTER_OP(ResampleGradOp);

}  // namespace

namespace ops {

DTensor resample(const DTensor& x, int64_t axis, int64_t size, Interpolation method,
                 bool antialias) {
  const int64_t a = normalize_axis(axis, x.rank(), "resample");
  const int64_t from = x.shape()[size_t(a)];
  if (size < 1 || from < 1) {
    throw ShapeError("resample", "extents are at least 1", str("from ", from, " to ", size),
                     "choose another size");
  }
  return size == from ? x : run_op(ResampleOp{{a, from, size, method, antialias}}, {x});
}

}  // namespace ops
}  // namespace tessera
