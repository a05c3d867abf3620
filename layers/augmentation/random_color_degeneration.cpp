#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomColorDegenerationOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomColorDegenerationLayer final : public AugmentationLayer {
 public:
  RandomColorDegenerationLayer(const Factor& factor, const RandomColorDegenerationOptions& options);
  std::string class_name() const override { return "RandomColorDegeneration"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  std::array<double, 2> factor_;
  RandomColorDegenerationOptions options_;
};

const RegisteredLayer registered_random_color_degeneration(
    "RandomColorDegeneration", [](JsonObject& config) {
      const auto options = layer_options_from<RandomColorDegenerationOptions>(config);
      return RandomColorDegeneration(config.take<Factor>("factor"), options);
    });

RandomColorDegenerationLayer::RandomColorDegenerationLayer(
    const Factor& factor, const RandomColorDegenerationOptions& options)
    : AugmentationLayer("RandomColorDegeneration", options),
      factor_(factor_range(where(), "factor", factor, -1, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

Shape RandomColorDegenerationLayer::transformed_shape(const Shape& images) const {
  check_rgb(where(), images);
  return images;
}

DTensor RandomColorDegenerationLayer::transform(const DTensor& images,
                                                const ImageDraws& draws) const {
  const DTensor share = for_images(draws.each(0, factor_[0], factor_[1]), images);
  const std::vector<double>& range = options_.value_range;
  return ops::clip(images + share * (gray_of(images) - images), range[0], range[1]);
}

}  // namespace

RandomColorDegeneration::RandomColorDegeneration(const Factor& factor,
                                                 const RandomColorDegenerationOptions& options)
    : AugmentationHandle(std::make_shared<RandomColorDegenerationLayer>(factor, options)) {}

}  // namespace tessera
