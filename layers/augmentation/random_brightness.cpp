#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomBrightnessOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomBrightnessLayer final : public AugmentationLayer {
 public:
  RandomBrightnessLayer(const Factor& factor, const RandomBrightnessOptions& options);
  std::string class_name() const override { return "RandomBrightness"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> factor_;
  RandomBrightnessOptions options_;
};

const RegisteredLayer registered_random_brightness("RandomBrightness", [](JsonObject& config) {
  const auto options = layer_options_from<RandomBrightnessOptions>(config);
  return RandomBrightness(config.take<Factor>("factor"), options);
});

RandomBrightnessLayer::RandomBrightnessLayer(const Factor& factor,
                                             const RandomBrightnessOptions& options)
    : AugmentationLayer("RandomBrightness", options),
      factor_(factor_range(where(), "factor", factor, -1, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

DTensor RandomBrightnessLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double>& range = options_.value_range;
  const DTensor more = draws.each(0, factor_[0], factor_[1]) * (range[1] - range[0]);
  return ops::clip(images + for_images(more, images), range[0], range[1]);
}

}  // namespace

RandomBrightness::RandomBrightness(const Factor& factor, const RandomBrightnessOptions& options)
    : AugmentationHandle(std::make_shared<RandomBrightnessLayer>(factor, options)) {}

}  // namespace tessera
