#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomHueOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomHueLayer final : public AugmentationLayer {
 public:
  RandomHueLayer(const Factor& factor, const RandomHueOptions& options);
  std::string class_name() const override { return "RandomHue"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  std::array<double, 2> factor_;
  RandomHueOptions options_;
};

const RegisteredLayer registered_random_hue("RandomHue", [](JsonObject& config) {
  const auto options = layer_options_from<RandomHueOptions>(config);
  return RandomHue(config.take<Factor>("factor"), options);
});

RandomHueLayer::RandomHueLayer(const Factor& factor, const RandomHueOptions& options)
    : AugmentationLayer("RandomHue", options),
      factor_(factor_range(where(), "factor", factor, 0, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

Shape RandomHueLayer::transformed_shape(const Shape& images) const {
  check_rgb(where(), images);
  return images;
}

DTensor RandomHueLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double>& range = options_.value_range;
  Hsv hsv = hsv_of(in_range(images, range, {0, 1}));
  const DTensor shift = draws.signs(0) * draws.each(1, factor_[0], factor_[1]) * 0.5;
  DTensor h = hsv.hue + for_images(shift, images);
  h = ops::where(ops::greater(h, constant_like(h, 1)), h - 1, h);
  hsv.hue = ops::where(ops::less(h, constant_like(h, 0)), h + 1, h);
  return in_range(ops::clip(rgb_of(hsv), 0, 1), {0, 1}, range);
}

}  // namespace

RandomHue::RandomHue(const Factor& factor, const RandomHueOptions& options)
    : AugmentationHandle(std::make_shared<RandomHueLayer>(factor, options)) {}

}  // namespace tessera
