#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomSaturationOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomSaturationLayer final : public AugmentationLayer {
 public:
  RandomSaturationLayer(const Factor& factor, const RandomSaturationOptions& options);
  std::string class_name() const override { return "RandomSaturation"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  std::array<double, 2> factor_;
  RandomSaturationOptions options_;
};

const RegisteredLayer registered_random_saturation("RandomSaturation", [](JsonObject& config) {
  const auto options = layer_options_from<RandomSaturationOptions>(config);
  return RandomSaturation(config.take<Factor>("factor"), options);
});

RandomSaturationLayer::RandomSaturationLayer(const Factor& factor,
                                             const RandomSaturationOptions& options)
    : AugmentationLayer("RandomSaturation", options),
      factor_(factor_range(where(), "factor", factor, -1, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

Shape RandomSaturationLayer::transformed_shape(const Shape& images) const {
  check_rgb(where(), images);
  return images;
}

DTensor RandomSaturationLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const DTensor f = draws.each(0, factor_[0], factor_[1]);
  const DTensor times = for_images(f / (-f + (1 + 1e-7)), images);
  Hsv hsv = hsv_of(images);
  const std::vector<double>& range = options_.value_range;
  hsv.saturation = ops::clip(hsv.saturation * times, range[0], range[1]);
  return rgb_of(hsv);
}

}  // namespace

RandomSaturation::RandomSaturation(const Factor& factor, const RandomSaturationOptions& options)
    : AugmentationHandle(std::make_shared<RandomSaturationLayer>(factor, options)) {}

}  // namespace tessera
