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

template <class Visit>
void fields(RandomErasingOptions& o, const Visit& visit) {
  visit("scale", o.scale);
  visit("fill_value", o.fill_value);
  visit("value_range", o.value_range);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomErasingLayer final : public AugmentationLayer {
 public:
  RandomErasingLayer(const Factor& factor, const RandomErasingOptions& options);
  std::string class_name() const override { return "RandomErasing"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape& images) const override;
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  DTensor filling(const DTensor& images, const ImageDraws& noise) const;

  std::array<double, 2> factor_, scale_;
  RandomErasingOptions options_;
};

const RegisteredLayer registered_random_erasing("RandomErasing", [](JsonObject& config) {
  const auto options = layer_options_from<RandomErasingOptions>(config);
  return RandomErasing(config.take_optional<Factor>("factor").value_or(1.0), options);
});

RandomErasingLayer::RandomErasingLayer(const Factor& factor, const RandomErasingOptions& options)
    : AugmentationLayer("RandomErasing", options),
      factor_(factor_range(where(), "factor", factor, 0, 1)),
      scale_(factor_range(where(), "scale", options.scale, 0, 1)),
      options_(options) {
  options_.scale = Factor(scale_[0], scale_[1]);
  options_.value_range = checked_value_range(where(), options.value_range);
  const ArrayOption& value = options.fill_value;
  if (!value.defined() || value.shape().empty() || value.shape() == Shape{3}) return;
  throw ConfigError(where(), "fill_value is one number or three", value.json().dump(),
                    "leave it out for random numbers");
}

Shape RandomErasingLayer::transformed_shape(const Shape& images) const {
  const bool each = options_.fill_value.defined() && !options_.fill_value.shape().empty();
  if (!each || images[3] == -1 || images[3] == 3) return images;
  throw ShapeError(where(), "fill_value holds a number for each channel", str(images[3]),
                   "give one number for all channels");
}

constexpr int64_t erasing_draws = 6;

int64_t values_of_image(const Shape& images) { return images[1] * images[2] * images[3]; }

int64_t RandomErasingLayer::draws(const Shape& images) const {
  // Box-Muller takes two uniform draws for each normal one.
  return erasing_draws + (options_.fill_value.defined() ? 0 : 2 * values_of_image(images));
}

DTensor RandomErasingLayer::filling(const DTensor& images, const ImageDraws& noise) const {
  const double min = options_.value_range[0], max = options_.value_range[1];
  if (options_.fill_value.defined()) {
    const at::Tensor values = options_.fill_value.tensor().to(images.dtype());
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
    const DTensor length = ops::sqrt(draws.each(of_length, scale_[0], scale_[1])) * extent;
    return pixels_between(images, axis, draws.each(of_start) * (-length + extent), length);
  };
  const DTensor box = ops::logical_and(cells(2, 0, 2), cells(1, 1, 3));
  const DTensor erased = ops::less(draws.each(5), draws.each(4, factor_[0], factor_[1]));
  const DTensor erased_pixels = ops::logical_and(box, as_images(erased));
  return ops::where(erased_pixels, filling(images, draws.from(erasing_draws)), images);
}

}  // namespace

RandomErasing::RandomErasing(const Factor& factor, const RandomErasingOptions& options)
    : AugmentationHandle(std::make_shared<RandomErasingLayer>(factor, options)) {}

}  // namespace tessera
