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

/// Cells on each side that count.
double radius(Interpolation how) {
  switch (how) {
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

/// The weight of a cell at a distance; the cubic is Keys' with a = -1/2.
double weight(Interpolation how, double distance) {
  const double d = std::abs(distance), r = radius(how);
  if (d >= r) return 0;
  if (how == Interpolation::bilinear) return 1 - d;
  if (how == Interpolation::bicubic) {
    return d <= 1 ? (1.5 * d - 2.5) * d * d + 1 : ((-0.5 * d + 2.5) * d - 4) * d + 2;
  }
  return sinc(d) * sinc(d / r);
}

/// What both directions share: an axis of `from` cells made one of `to`.
struct Resampling {
  int64_t axis = 0, from = 1, to = 1;
  Interpolation how = Interpolation::bilinear;
  bool antialias = false;

  /// How much wider than between neighbours the weights reach.
  double stretch() const { return antialias && from > to ? double(from) / double(to) : 1; }
  /// Where made cell i lies among the cells.
  double centre(int64_t i) const { return (double(i) + 0.5) * double(from) / double(to) - 0.5; }
  /// Cells that made cell i reads.
  Interval taps(int64_t i) const {
    const double reach = radius(how) * stretch();
    const auto lo = static_cast<int64_t>(std::floor(centre(i) - reach)) + 1;
    const auto hi = static_cast<int64_t>(std::ceil(centre(i) + reach));
    return intersect({lo, hi}, {0, from});
  }
  Interval reads(Interval made) const {
    return made.empty() ? Interval{} : Interval{taps(made.lo).lo, taps(made.hi - 1).hi};
  }
  /// Made cells that read any of some.
  Interval readers(Interval cells) const {
    int64_t lo = 0, hi = to;
    while (lo < hi && taps(lo).hi <= cells.lo) ++lo;
    while (hi > lo && taps(hi - 1).lo >= cells.hi) --hi;
    return cells.empty() ? Interval{} : Interval{lo, hi};
  }
  /// Weights (made cells, cells).
  at::Tensor matrix(Interval made, Interval cells, const at::TensorOptions& options) const {
    return shape_table(
        "resample",
        {from, to, int64_t(how), int64_t(antialias), made.lo, made.hi, cells.lo, cells.hi}, options,
        [&] { return matrix_on_host(made, cells); });
  }
  at::Tensor matrix_on_host(Interval made, Interval cells) const {
    at::Tensor weights = at::zeros({made.size(), cells.size()}, at::kDouble);
    double* const data = weights.data_ptr<double>();
    for (int64_t i = made.lo; i < made.hi; ++i) {
      const auto of = [&](int64_t c) { return weight(how, (double(c) - centre(i)) / stretch()); };
      const Interval all = taps(i);
      double sum = 0;
      for (int64_t c = all.lo; c < all.hi; ++c) sum += of(c);
      const Interval own = intersect(all, cells);
      for (int64_t c = own.lo; c < own.hi; ++c) {
        data[(i - made.lo) * cells.size() + c - cells.lo] = of(c) / sum;
      }
    }
    return weights;
  }
  /// The block's axis times a matrix (in, out).
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
  auto attributes() const { return std::tie(axis, from, to, how, antialias); }
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
    const auto of = [](const Shape& x, int64_t axis, int64_t to, Interpolation how,
                       bool antialias = false) {
      return Sample<ResampleOp>{{{x}}, {{axis, x[size_t(axis)], to, how, antialias}}};
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
  auto attributes() const { return std::tie(axis, from, to, how, antialias); }
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

DTensor resample(const DTensor& x, int64_t axis, int64_t size, Interpolation how, bool antialias) {
  const int64_t a = normalize_axis(axis, x.rank(), "resample");
  const int64_t from = x.shape()[size_t(a)];
  if (size < 1 || from < 1) {
    throw ShapeError("resample", "extents are at least 1", str(from, " made ", size),
                     "choose another size");
  }
  return size == from ? x : run_op(ResampleOp{{a, from, size, how, antialias}}, {x});
}

}  // namespace ops
}  // namespace tessera
