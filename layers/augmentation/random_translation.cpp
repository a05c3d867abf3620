#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomTranslationOptions& o, const Visit& visit) {
  visit("fill_mode", o.fill_mode);
  visit("interpolation", o.interpolation);
  visit("seed", o.seed);
  visit("fill_value", o.fill_value);
  visit("data_format", o.data_format);
}

namespace {

class RandomTranslationLayer final : public GeometricAugmentationLayer {
 public:
  RandomTranslationLayer(const Factor& height_factor, const Factor& width_factor,
                         const RandomTranslationOptions& options);
  std::string class_name() const override { return "RandomTranslation"; }
  Json config() const override;
  int64_t draws(const Shape&) const override { return 2; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;

 private:
  Factor height_factor_, width_factor_;
  RandomTranslationOptions options_;
  std::array<double, 2> height_, width_;
};

const RegisteredLayer registered_random_translation("RandomTranslation", [](JsonObject& config) {
  const auto options = layer_options_from<RandomTranslationOptions>(config);
  const auto height_factor = config.take<Factor>("height_factor");
  return RandomTranslation(height_factor, config.take<Factor>("width_factor"), options);
});

RandomTranslationLayer::RandomTranslationLayer(const Factor& height_factor,
                                               const Factor& width_factor,
                                               const RandomTranslationOptions& options)
    : GeometricAugmentationLayer("RandomTranslation", options, options.fill_mode),
      height_factor_(height_factor),
      width_factor_(width_factor),
      options_(options),
      height_(factor_range(where(), "height_factor", height_factor, -1, 1)),
      width_(factor_range(where(), "width_factor", width_factor, -1, 1)) {}

Json RandomTranslationLayer::config() const {
  return layer_config(
      *this, {{"height_factor", height_factor_.json()}, {"width_factor", width_factor_.json()}},
      options_);
}

DTensor RandomTranslationLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const auto height = double(images[1]), width = double(images[2]);
  const DTensor down = draws.each(0, height_[0], height_[1]) * height;
  const DTensor right = draws.each(1, width_[0], width_[1]) * width;
  const DTensor stays = down * 0 + 1;
  return transform_rows({stays, {}, -right, {}, stays, -down, {}, {}}, down);
}

}  // namespace

RandomTranslation::RandomTranslation(const Factor& height_factor, const Factor& width_factor,
                                     const RandomTranslationOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomTranslationLayer>(height_factor, width_factor, options)) {}

}  // namespace tessera
