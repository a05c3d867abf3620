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

class RandomBrightnessLayer final
    : public AugmentationOf<RandomBrightnessLayer, FactorArguments<RandomBrightnessOptions>> {
 public:
  static constexpr const char* keras_name = "RandomBrightness";
  explicit RandomBrightnessLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, -1, 1);
  }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomBrightnessLayer> registered_random_brightness;

DTensor RandomBrightnessLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double>& range = arguments_.value_range;
  const DTensor more = draws.each(0, arguments_.factor) * (range[1] - range[0]);
  return ops::clip(images + for_images(more, images), range[0], range[1]);
}

}  // namespace

RandomBrightness::RandomBrightness(const Factor& factor, const RandomBrightnessOptions& options)
    : AugmentationHandle(std::make_shared<RandomBrightnessLayer>(
          RandomBrightnessLayer::Arguments{options, factor})) {}

}  // namespace tessera
