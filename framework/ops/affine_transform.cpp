#include <tessera/framework/ops/affine_transform.hpp>

#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera {

using namespace detail;

namespace {

using ops::FillMode;

/// Larger than any image's extent; float32 is exact for integers up to it.
constexpr double max_coordinate = 1 << 24;

/// Maps indices beyond the ends of an axis to the pixels that the fill mode repeats there.
at::Tensor repeated_index(const at::Tensor& pixels, int64_t extent, FillMode mode) {
  const auto folded = [&](int64_t period, int64_t last) {
    const at::Tensor phase = pixels.remainder(period);
    return at::minimum(phase, last - phase);
  };
  if (mode == FillMode::wrap) return pixels.remainder(extent);
  if (mode == FillMode::reflect) return folded(2 * extent, 2 * extent - 1);
  if (mode == FillMode::mirror && extent > 1) return folded(2 * extent - 2, 2 * extent - 2);
  return pixels.clamp(0, extent - 1);
}

/// Shared part of both directions: images of `height` by `width` pixels, read at `out_height` by
/// `out_width` points.
struct AffineTransform {
  int64_t height = 1, width = 1, out_height = 1, out_width = 1;
  bool nearest = false;
  FillMode mode = FillMode::constant;
  double fill = 0;
  auto attributes() const {
    return std::tie(height, width, out_height, out_width, nearest, mode, fill);
  }

  Rule rule(const Specs&) const { return Rule::parse("n . . c, n . -> n . . c"); }
  Specs with_size(const Specs& in, int64_t h, int64_t w) const {
    return {{{in[0].shape[0], h, w, in[0].shape[3]}, in[0].dtype}};
  }

  /// Calls f(pixels, weights, inside) for each pixel that an output point reads: once if `nearest`,
  /// else 4 times. All are (n · points,): row indices into the block as (pixels, channels),
  /// weights, and whether the pixel is inside the image. `inside` is undefined unless the mode is
  /// constant.
  using Tap = std::function<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;
  void each_tap(const at::Tensor& transforms, at::ScalarType dtype, const Tap& f) const {
    const at::Tensor t = transforms.to(dtype);
    const int64_t n = t.size(0);
    const at::Tensor x = at::arange(out_width, t.options()).view({1, 1, -1});
    const at::Tensor y = at::arange(out_height, t.options()).view({1, -1, 1});
    const auto plane = [&](int64_t first, const at::Tensor& constant) {
      const auto at_row = [&](int64_t i) { return t.select(1, i).view({n, 1, 1}); };
      return at_row(first).mul(x).add(at_row(first + 1).mul(y)).add(constant);
    };
    const auto numerator = [&](int64_t first) {
      return plane(first, t.select(1, first + 2).view({n, 1, 1}));
    };
    const at::Tensor k = plane(6, at::ones({}, t.options()));
    const auto coordinate = [&](int64_t first) {
      const at::Tensor at = numerator(first).div(k);
      return at.nan_to_num(-max_coordinate).clamp(-max_coordinate, max_coordinate);
    };
    const at::Tensor px = coordinate(0), py = coordinate(3);
    if (nearest) {
      const at::Tensor near_y = py.add(0.5).floor(), near_x = px.add(0.5).floor();
      return tap(f, near_y.to(at::kLong), near_x.to(at::kLong), at::ones_like(near_x));
    }
    const at::Tensor low_x = px.floor(), low_y = py.floor();
    const at::Tensor fraction_x = px.sub(low_x), fraction_y = py.sub(low_y);
    const at::Tensor pixel_x = low_x.to(at::kLong), pixel_y = low_y.to(at::kLong);
    for (const bool below : {false, true}) {
      for (const bool right : {false, true}) {
        const at::Tensor weight_y = below ? fraction_y : fraction_y.neg().add(1);
        const at::Tensor weight_x = right ? fraction_x : fraction_x.neg().add(1);
        tap(f, pixel_y.add(below), pixel_x.add(right), weight_y.mul(weight_x));
      }
    }
  }
  void tap(const Tap& f, const at::Tensor& y, const at::Tensor& x,
           const at::Tensor& weights) const {
    at::Tensor inside;
    if (mode == FillMode::constant) {
      inside = y.ge(0).logical_and_(y.lt(height)).logical_and_(x.ge(0)).logical_and_(x.lt(width));
      inside = inside.flatten();
    }
    const at::Tensor rows = at::arange(y.size(0), y.options()).view({-1, 1, 1});
    const at::Tensor pixels = rows.mul(height)
                                  .add(repeated_index(y, height, mode))
                                  .mul_(width)
                                  .add_(repeated_index(x, width, mode));
    f(pixels.flatten(), weights.flatten(), inside);
  }
  static at::ScalarType compute_dtype(const at::Tensor& images) {
    return images.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  }
};

struct AffineTransformOp : AffineTransform {
  static constexpr std::string_view name = "affine_transform";
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_floating(name, in[1]);
    return with_size(in, out_height, out_width);
  }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = compute_dtype(in[0]);
    const int64_t n = in[0].size(0), channels = in[0].size(3);
    const at::Tensor pixels = in[0].to(dtype).reshape({-1, channels});
    at::Tensor sum;
    each_tap(in[1], dtype,
             [&](const at::Tensor& pixel, const at::Tensor& weight, const at::Tensor& inside) {
               at::Tensor value = pixels.index_select(0, pixel);
               if (inside.defined()) value.masked_fill_(inside.logical_not().unsqueeze(1), fill);
               if (nearest) {
                 sum = value;
                 return;
               }
               value.mul_(weight.unsqueeze(1));
               sum = sum.defined() ? sum.add_(value) : value;
             });
    return {sum.view({n, out_height, out_width, channels}).to(in[0].scalar_type())};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const;
  static Samples<AffineTransformOp> samples() {
    const auto of = [](const Shape& x, int64_t h, int64_t w, bool nearest, FillMode mode) {
      const SampleInput transforms{{x[0], 8}, at::kDouble, -0.9, 0.9, false, false};
      return Sample<AffineTransformOp>{{{x}, transforms}, {{x[1], x[2], h, w, nearest, mode, 0.5}}};
    };
    return {of({3, 4, 5, 2}, 4, 5, false, FillMode::reflect),
            of({2, 3, 4, 3}, 5, 2, false, FillMode::constant),
            of({4, 3, 3, 1}, 3, 3, true, FillMode::wrap),
            of({2, 1, 3, 2}, 2, 3, false, FillMode::mirror),
            of({1, 2, 2, 2}, 3, 1, true, FillMode::nearest)};
  }
};

/// The gradient of the images: each output point adds its weighted gradient to the pixels it read.
struct AffineTransformGradOp : AffineTransform {
  static constexpr std::string_view name = "affine_transform_grad";
  Specs infer(const Specs& in) const { return with_size(in, height, width); }
  Tensors forward(const LocalArgs& in) const {
    const at::ScalarType dtype = compute_dtype(in[0]);
    const int64_t n = in[0].size(0), channels = in[0].size(3);
    const at::Tensor dy = in[0].to(dtype).reshape({-1, channels});
    at::Tensor sum;
    each_tap(in[1], dtype,
             [&](const at::Tensor& pixel, const at::Tensor& weight, const at::Tensor& inside) {
               // ATen's kernel accumulates in a fixed order on GPUs too, and skips index -1.
               const at::Tensor index =
                   inside.defined() ? pixel.masked_fill(inside.logical_not(), -1) : pixel;
               const at::Tensor scattered = at::embedding_dense_backward(
                   dy.mul(weight.unsqueeze(1)), index, n * height * width, -1, false);
               sum = sum.defined() ? sum.add_(scattered) : scattered;
             });
    return {sum.view({n, height, width, channels}).to(in[0].scalar_type())};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dx, Needs) const {
    AffineTransformOp op{*this};
    op.fill = 0;
    return {run_op(op, {dx[0], saved.in(1)}), DTensor()};
  }
  static Samples<AffineTransformGradOp> samples() {
    const SampleInput transforms{{2, 8}, at::kDouble, -0.9, 0.9, false, false};
    return {{{{{2, 3, 2, 3}}, transforms}, {{4, 3, 3, 2, false, FillMode::reflect, 0}}},
            {{{{2, 3, 4, 2}}, transforms}, {{3, 3, 3, 4, false, FillMode::constant, 0}}}};
  }
};

Grads AffineTransformOp::gradient(const Saved& saved, const Cotangents& dy, Needs) const {
  return {run_op(AffineTransformGradOp{*this}, {dy[0], saved.in(1)}), DTensor()};
}

TESSERA_REGISTER_OP(AffineTransformOp);
TESSERA_REGISTER_OP(AffineTransformGradOp);

}  // namespace

namespace ops {

DTensor affine_transform(const DTensor& images, const DTensor& transforms,
                         const AffineTransformOptions& options) {
  const Shape& x = images.shape();
  const bool valid = x.size() == 4 && x[1] > 0 && x[2] > 0;
  if (!valid || transforms.shape() != Shape{x[0], 8}) {
    throw ShapeError("affine_transform",
                     "images must be (n, h, w, c) with h, w >= 1, and transforms (n, 8)",
                     str(to_string(x), " and ", to_string(transforms.shape())),
                     "pass 4-d images and a row of 8 numbers for each");
  }
  const auto [h, w] = options.size.value_or(std::array<int64_t, 2>{x[1], x[2]});
  if (h < 1 || w < 1) {
    throw ShapeError("affine_transform", "extents are at least 1", str(h, " by ", w),
                     "choose another size");
  }
  return run_op(
      AffineTransformOp{{x[1], x[2], h, w, options.nearest, options.fill_mode, options.fill_value}},
      {images, transforms});
}

}  // namespace ops
}  // namespace tessera
