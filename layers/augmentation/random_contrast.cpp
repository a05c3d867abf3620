#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomContrastOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomContrastLayer final : public AugmentationLayer {
 public:
  RandomContrastLayer(const Factor& factor, const RandomContrastOptions& options);
  std::string class_name() const override { return "RandomContrast"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> factor_;
  RandomContrastOptions options_;
};

const RegisteredLayer registered_random_contrast("RandomContrast", [](JsonObject& config) {
  const auto options = layer_options_from<RandomContrastOptions>(config);
  return RandomContrast(config.take<Factor>("factor"), options);
});

RandomContrastLayer::RandomContrastLayer(const Factor& factor, const RandomContrastOptions& options)
    : AugmentationLayer("RandomContrast", options),
      factor_(factor_range(where(), "factor", factor, 0, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

DTensor RandomContrastLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const DTensor contrast = for_images(draws.each(0, 1 - factor_[0], 1 + factor_[1]), images);
  const DTensor mean = ops::mean(images, {1, 2}, true);
  const std::vector<double>& range = options_.value_range;
  return ops::clip((images - mean) * contrast + mean, range[0], range[1]);
}

}  // namespace

RandomContrast::RandomContrast(const Factor& factor, const RandomContrastOptions& options)
    : AugmentationHandle(std::make_shared<RandomContrastLayer>(factor, options)) {}

}  // namespace tessera
