#include <tessera/layers/augmentation/random_erasing.hpp>

#include <numbers>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomErasingArguments : RandomErasingOptions {
  Factor factor = 1.0;
};

template <class Visit>
void fields(RandomErasingArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("scale", a.scale);
  visit("fill_value", a.fill_value);
  visit("value_range", a.value_range);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class RandomErasingLayer final : public AugmentationOf<RandomErasingLayer, RandomErasingArguments> {
 public:
  static constexpr const char* keras_name = "RandomErasing";
  explicit RandomErasingLayer(const RandomErasingArguments& arguments);
  int64_t draws(const Shape& images) const override;
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  DTensor filling(const DTensor& images, const ImageDraws& noise) const;
};

const RegisteredLayerOf<RandomErasingLayer> registered_random_erasing;

RandomErasingLayer::RandomErasingLayer(const RandomErasingArguments& arguments)
    : AugmentationOf(arguments) {
  arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  arguments_.scale = factor_range(where(), "scale", arguments.scale, 0, 1);
  const ArrayOption& value = arguments.fill_value;
  if (!value.defined() || value.shape().empty() || value.shape() == Shape{3}) return;
  throw ConfigError(where(), "fill_value is one number or three", value.json().dump(),
                    "leave it out for random numbers");
}

Shape RandomErasingLayer::transformed_shape(const Shape& images) const {
  const bool each = arguments_.fill_value.defined() && !arguments_.fill_value.shape().empty();
  if (!each || images[3] == -1 || images[3] == 3) return images;
  throw ShapeError(where(), "fill_value holds a number for each channel", str(images[3]),
                   "give one number for all channels");
}

constexpr int64_t erasing_draws = 6;

int64_t values_of_image(const Shape& images) { return images[1] * images[2] * images[3]; }

int64_t RandomErasingLayer::draws(const Shape& images) const {
  // Box-Muller takes two uniform draws for each normal one.
  return erasing_draws + (arguments_.fill_value.defined() ? 0 : 2 * values_of_image(images));
}

DTensor RandomErasingLayer::filling(const DTensor& images, const ImageDraws& noise) const {
  const double min = arguments_.value_range[0], max = arguments_.value_range[1];
  if (arguments_.fill_value.defined()) {
    const at::Tensor values = arguments_.fill_value.tensor().to(images.dtype());
    return ops::clip(pack(values, Layout::replicated(images.mesh(), values.dim())), min, max);
  }
  // Normal noise by the Box-Muller transform.
  const int64_t cells = values_of_image(images.shape());
  const DTensor radius = ops::sqrt(ops::log(-noise.each_of(0, cells) + 1) * -2);
  const DTensor angle = noise.each_of(cells, cells) * (2 * std::numbers::pi);
  const DTensor normal = ops::reshape(radius * ops::cos(angle), images.shape());
  return ops::clip(ops::cast(normal * max, images.dtype()), min, max);
}

DTensor RandomErasingLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const auto cells = [&](int64_t axis, int64_t of_length, int64_t of_start) {
    const auto extent = double(images.shape()[static_cast<size_t>(axis)]);
    const DTensor length = ops::sqrt(draws.each(of_length, arguments_.scale)) * extent;
    return pixels_between(images, axis, draws.each(of_start) * (-length + extent), length);
  };
  const DTensor box = ops::logical_and(cells(2, 0, 2), cells(1, 1, 3));
  const DTensor erased = ops::less(draws.each(5), draws.each(4, arguments_.factor));
  const DTensor erased_pixels = ops::logical_and(box, as_images(erased));
  return ops::where(erased_pixels, filling(images, draws.from(erasing_draws)), images);
}

}  // namespace

RandomErasing::RandomErasing(const Factor& factor, const RandomErasingOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomErasingLayer>(RandomErasingArguments{options, factor})) {}

}  // namespace tessera
