#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomTranslationArguments : RandomTranslationOptions {
  Factor height_factor, width_factor;
};

template <class Visit>
void fields(RandomTranslationArguments& a, const Visit& visit) {
  RequiredOption height_factor{a.height_factor};
  RequiredOption width_factor{a.width_factor};
  visit("height_factor", height_factor);
  visit("width_factor", width_factor);
  visit("fill_mode", a.fill_mode);
  visit("interpolation", a.interpolation);
  visit("seed", a.seed);
  visit("fill_value", a.fill_value);
  visit("data_format", a.data_format);
}

class RandomTranslationLayer final
    : public AugmentationOf<RandomTranslationLayer, RandomTranslationArguments,
                            GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomTranslation";
  explicit RandomTranslationLayer(const RandomTranslationArguments& arguments);
  int64_t draws(const Shape&) const override { return 2; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;

 private:
  Factor height_, width_;
};

const RegisteredLayerOf<RandomTranslationLayer> registered_random_translation;

RandomTranslationLayer::RandomTranslationLayer(const RandomTranslationArguments& arguments)
    : AugmentationOf(arguments) {
  height_ = factor_range(where(), "height_factor", arguments.height_factor, -1, 1);
  width_ = factor_range(where(), "width_factor", arguments.width_factor, -1, 1);
}

DTensor RandomTranslationLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const auto height = double(images[1]), width = double(images[2]);
  const DTensor down = draws.each(0, height_) * height;
  const DTensor right = draws.each(1, width_) * width;
  const DTensor stays = down * 0 + 1;
  return transform_rows({stays, {}, -right, {}, stays, -down, {}, {}}, down);
}

}  // namespace

RandomTranslation::RandomTranslation(const Factor& height_factor, const Factor& width_factor,
                                     const RandomTranslationOptions& options)
    : AugmentationHandle(std::make_shared<RandomTranslationLayer>(
          RandomTranslationArguments{options, height_factor, width_factor})) {}

}  // namespace tessera
