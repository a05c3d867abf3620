#include <tessera/layers/augmentation/geometry.hpp>

#include <algorithm>
#include <numbers>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomElasticTransformArguments : RandomElasticTransformOptions {
  Factor factor = 1.0;
};

template <class Visit>
void fields(RandomElasticTransformArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("scale", a.scale);
  visit("interpolation", a.interpolation);
  visit("fill_mode", a.fill_mode);
  visit("fill_value", a.fill_value);
  visit("value_range", a.value_range);
  visit("data_format", a.data_format);
  visit("seed", a.seed);
}

/// Points that pixels are read from, each (batch, height · width, 1) in float64: their rows and
/// columns.
struct PixelPoints {
  DTensor y, x;
};

class RandomElasticTransformLayer final
    : public AugmentationOf<RandomElasticTransformLayer, RandomElasticTransformArguments> {
 public:
  static constexpr const char* keras_name = "RandomElasticTransform";
  explicit RandomElasticTransformLayer(const RandomElasticTransformArguments& arguments);
  int64_t draws(const Shape& images) const override;
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;

 protected:
  bool draws_for_batch() const override { return true; }

 private:
  /// Whether the options leave any image distorted.
  bool distorts() const {
    return arguments_.factor.values[1] > 0 && arguments_.scale.values[1] > 0;
  }
  PixelPoints points(const DTensor& images, const ImageDraws& draws) const;
  DTensor moved(const DTensor& x, const PixelPoints& from, bool nearest) const;
  DTensor pixels_at(const DTensor& x, const DTensor& rows, const DTensor& columns) const;
  DTensor chosen(const ImageDraws& draws, const DTensor& moved, const DTensor& x) const;

  ops::AffineTransformOptions moving_;
};

const RegisteredLayerOf<RandomElasticTransformLayer> registered_random_elastic_transform;

RandomElasticTransformLayer::RandomElasticTransformLayer(
    const RandomElasticTransformArguments& arguments)
    : AugmentationOf(arguments) {
  // The other layers do not have this mode.
  const bool mirror = arguments.fill_mode == "mirror";
  moving_ = affine_options(where(), mirror ? "reflect" : arguments.fill_mode,
                           arguments.interpolation, arguments.fill_value);
  if (mirror) moving_.fill_mode = ops::FillMode::mirror;
  arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  arguments_.scale = factor_range(where(), "scale", arguments.scale, 0, 1);
}

constexpr int64_t elastic_draws = 3;

int64_t RandomElasticTransformLayer::draws(const Shape& images) const {
  // Box-Muller takes two uniform draws for each normal one, of which each pixel has two.
  return distorts() ? elastic_draws + 4 * images[1] * images[2] : 0;
}

/// Returns the weights of taps at these distances: a Gaussian that ends at `radius`.
DTensor gaussian_taps(const at::Tensor& distances, const DTensor& sigma, const DTensor& radius) {
  const DTensor at = pack(distances, Layout::replicated(sigma.mesh(), 2));
  const DTensor weights = ops::exp(ops::square(at / sigma) * -0.5);
  return ops::where(ops::less_equal(at, radius), weights, constant_like(weights, 0));
}

PixelPoints RandomElasticTransformLayer::points(const DTensor& images,
                                                const ImageDraws& draws) const {
  const int64_t rows = images.shape()[0], height = images.shape()[1], width = images.shape()[2],
                pixels = height * width;
  const DTensor strength = draws.shared(2, arguments_.scale.values[0], arguments_.scale.values[1]);
  const DTensor deviation = strength * 0.05 * double(std::min(height, width));
  // Float64, in which products of matrices do not depend on the number of rows once rounded.
  const DTensor alpha = ops::cast(strength * 0.1 * double(std::max(height, width)), at::kDouble);
  const DTensor radius = ops::cast(ops::floor(ops::floor(deviation * 6) * 0.5), at::kDouble);
  const DTensor sigma = ops::maximum(ops::cast(deviation, at::kDouble), 1e-6);
  const at::Tensor reach = at::arange(std::min(height, width), at::kDouble);
  const DTensor one_side = ops::sum(gaussian_taps(reach.unsqueeze(0), sigma, radius), {1}, true);
  const DTensor total = one_side * 2 - 1;
  const auto blur = [&](int64_t extent) {
    const at::Tensor index = at::arange(extent, at::kDouble);
    const at::Tensor distances = (index.unsqueeze(0) - index.unsqueeze(1)).abs();
    return gaussian_taps(distances, sigma, radius) / total;
  };
  const DTensor along_width = blur(width), along_height = blur(height);
  const auto shift = [&](int64_t first) {
    const DTensor length = ops::sqrt(ops::log(-draws.each_of(first, pixels) + 1) * -2);
    const DTensor angle = draws.each_of(first + pixels, pixels) * (2 * std::numbers::pi);
    const DTensor noise = ops::cast(length * ops::cos(angle), at::kDouble) * sigma;
    const DTensor smooth = ops::matmul(ops::reshape(noise, {rows, height, width}), along_width);
    const DTensor both = ops::matmul(ops::transpose(smooth, {0, 2, 1}), along_height);
    return ops::reshape(ops::transpose(both, {0, 2, 1}) * alpha, {rows, pixels, 1});
  };
  const auto grid = [&](const at::Tensor& index) {
    return pack(index.reshape({1, pixels, 1}), Layout::replicated(images.mesh(), 3));
  };
  const at::Tensor y = at::arange(height, at::kDouble).unsqueeze(1).expand({height, width});
  const at::Tensor x = at::arange(width, at::kDouble).unsqueeze(0).expand({height, width});
  const DTensor right = shift(elastic_draws), down = shift(elastic_draws + 2 * pixels);
  return {grid(y) + down, grid(x) + right};
}

/// Maps indices beyond the ends of an axis to the pixels that the fill mode repeats there.
DTensor folded_index(const DTensor& index, int64_t extent, ops::FillMode mode) {
  const auto folded = [&](int64_t period, int64_t last) {
    const DTensor phase = ops::remainder(index, double(period));
    return ops::minimum(phase, -phase + double(last));
  };
  if (mode == ops::FillMode::wrap) return ops::remainder(index, double(extent));
  if (mode == ops::FillMode::reflect) return folded(2 * extent, 2 * extent - 1);
  if (mode == ops::FillMode::mirror && extent > 1) return folded(2 * extent - 2, 2 * extent - 2);
  return ops::clip(index, 0, double(extent - 1));
}

/// Returns the pixels of x in these rows and columns, (batch, height · width, channels).
DTensor RandomElasticTransformLayer::pixels_at(const DTensor& x, const DTensor& rows,
                                               const DTensor& columns) const {
  const Shape& shape = x.shape();
  const int64_t height = shape[1], width = shape[2];
  const DTensor row = folded_index(rows, height, moving_.fill_mode);
  const DTensor column = folded_index(columns, width, moving_.fill_mode);
  const DTensor pixels = ops::reshape(x, {shape[0], height * width, shape[3]});
  const DTensor index = ops::cast(row * double(width) + column, at::kLong);
  const DTensor values = ops::take_along_axis(pixels, index, 1);
  if (moving_.fill_mode != ops::FillMode::constant) return values;
  const DTensor inside = ops::logical_and(ops::equal(row, rows), ops::equal(column, columns));
  return ops::where(inside, values, constant_like(values, moving_.fill_value));
}

DTensor RandomElasticTransformLayer::moved(const DTensor& x, const PixelPoints& from,
                                           bool nearest) const {
  if (nearest) {
    const DTensor pixels = pixels_at(x, ops::floor(from.y + 0.5), ops::floor(from.x + 0.5));
    return ops::reshape(pixels, x.shape());
  }
  const DTensor top = ops::floor(from.y), left = ops::floor(from.x);
  const DTensor to_bottom = ops::cast(from.y - top, x.dtype());
  const DTensor to_right = ops::cast(from.x - left, x.dtype());
  const auto row = [&](const DTensor& y) {
    return pixels_at(x, y, left) * (-to_right + 1) + pixels_at(x, y, left + 1) * to_right;
  };
  return ops::reshape(row(top) * (-to_bottom + 1) + row(top + 1) * to_bottom, x.shape());
}

/// Returns the moved images where the draws say so.
DTensor RandomElasticTransformLayer::chosen(const ImageDraws& draws, const DTensor& moved,
                                            const DTensor& x) const {
  const DTensor distorted = as_images(ops::less(draws.each(1), draws.each(0, arguments_.factor)));
  return ops::where(distorted, moved, x);
}

DTensor RandomElasticTransformLayer::transform(const DTensor& images,
                                               const ImageDraws& draws) const {
  if (!distorts()) return images;
  const DTensor x = widened(images);
  const DTensor made = chosen(draws, moved(x, points(x, draws), moving_.nearest), x);
  const std::vector<double>& range = arguments_.value_range;
  const DTensor clipped = ops::clip(made, range[0], range[1]);
  return ops::cast(clipped, images.dtype());
}

DTensor RandomElasticTransformLayer::transform_masks(const DTensor& masks,
                                                     const ImageDraws& draws) const {
  if (!distorts()) return masks;
  return transformed_masks(
      masks, [&](const DTensor& x) { return chosen(draws, moved(x, points(x, draws), true), x); });
}

BoundingBoxes RandomElasticTransformLayer::transform_boxes(const BoundingBoxes&, const Shape&,
                                                           const ImageDraws&) const {
  throw ConfigError(where(), "bounding boxes are not supported", "images with boxes",
                    "leave the boxes out, or use a layer such as RandomShear");
}

}  // namespace

RandomElasticTransform::RandomElasticTransform(const Factor& factor,
                                               const RandomElasticTransformOptions& options)
    : AugmentationHandle(std::make_shared<RandomElasticTransformLayer>(
          RandomElasticTransformArguments{options, factor})) {}

}  // namespace tessera
