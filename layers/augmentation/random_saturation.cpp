#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
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

class RandomSaturationLayer final
    : public AugmentationOf<RandomSaturationLayer, FactorArguments<RandomSaturationOptions>> {
 public:
  static constexpr const char* keras_name = "RandomSaturation";
  explicit RandomSaturationLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, -1, 1);
  }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;
};

const RegisteredLayerOf<RandomSaturationLayer> registered_random_saturation;

Shape RandomSaturationLayer::transformed_shape(const Shape& images) const {
  check_rgb(where(), images);
  return images;
}

DTensor RandomSaturationLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  // As in RandomHue, colors would change by several levels in float16 and bfloat16.
  const DTensor x = widened(images), f = draws.each(0, arguments_.factor);
  const DTensor times = for_images(f / (-f + (1 + 1e-7)), x);
  Hsv hsv = hsv_of(x);
  const std::vector<double>& range = arguments_.value_range;
  hsv.saturation = ops::clip(hsv.saturation * times, range[0], range[1]);
  return ops::cast(rgb_of(hsv), images.dtype());
}

}  // namespace

RandomSaturation::RandomSaturation(const Factor& factor, const RandomSaturationOptions& options)
    : AugmentationHandle(std::make_shared<RandomSaturationLayer>(
          RandomSaturationLayer::Arguments{options, factor})) {}

}  // namespace tessera
