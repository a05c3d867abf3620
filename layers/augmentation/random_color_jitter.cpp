#include <tessera/layers/augmentation/color.hpp>

#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomColorJitterOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("brightness_factor", o.brightness_factor);
  visit("contrast_factor", o.contrast_factor);
  visit("saturation_factor", o.saturation_factor);
  visit("hue_factor", o.hue_factor);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomColorJitterLayer final
    : public AugmentationOf<RandomColorJitterLayer, RandomColorJitterOptions> {
 public:
  static constexpr const char* keras_name = "RandomColorJitter";
  explicit RandomColorJitterLayer(const RandomColorJitterOptions& options);
  int64_t draws(const Shape& images) const override;
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;

 private:
  std::vector<std::shared_ptr<const AugmentationLayer>> augmentations_;
};

const RegisteredLayerOf<RandomColorJitterLayer> registered_random_color_jitter;

RandomColorJitterLayer::RandomColorJitterLayer(const RandomColorJitterOptions& options)
    : AugmentationOf(options) {
  const auto add = [&](const LayerHandle& augmentation) {
    augmentations_.push_back(as_augmentation(augmentation));
  };
  const auto& o = arguments_;
  if (o.brightness_factor) {
    add(RandomBrightness(*o.brightness_factor, {.value_range = o.value_range, .name = o.name}));
  }
  if (o.contrast_factor) {
    add(RandomContrast(*o.contrast_factor, {.value_range = o.value_range, .name = o.name}));
  }
  if (o.saturation_factor) {
    add(RandomSaturation(*o.saturation_factor, {.value_range = o.value_range, .name = o.name}));
  }
  if (o.hue_factor) {
    add(RandomHue(*o.hue_factor, {.value_range = o.value_range, .name = o.name}));
  }
}

Shape RandomColorJitterLayer::transformed_shape(const Shape& images) const {
  if (arguments_.saturation_factor || arguments_.hue_factor) check_rgb(where(), images);
  return images;
}

int64_t RandomColorJitterLayer::draws(const Shape& images) const {
  int64_t count = 0;
  for (const auto& augmentation : augmentations_) count += augmentation->draws(images);
  return count;
}

DTensor RandomColorJitterLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  DTensor x = images;
  int64_t used = 0;
  for (const auto& augmentation : augmentations_) {
    x = augmentation->transform(x, draws.from(used));
    used += augmentation->draws(images.shape());
  }
  return x;
}

}  // namespace

RandomColorJitter::RandomColorJitter(const RandomColorJitterOptions& options)
    : AugmentationHandle(std::make_shared<RandomColorJitterLayer>(options)) {}

}  // namespace tessera
