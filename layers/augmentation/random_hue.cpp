#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
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

class RandomHueLayer final
    : public AugmentationOf<RandomHueLayer, FactorArguments<RandomHueOptions>> {
 public:
  static constexpr const char* keras_name = "RandomHue";
  explicit RandomHueLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  }
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;
};

const RegisteredLayerOf<RandomHueLayer> registered_random_hue;

Shape RandomHueLayer::transformed_shape(const Shape& images) const {
  check_rgb(where(), images);
  return images;
}

DTensor RandomHueLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double>& range = arguments_.value_range;
  // A hue that float16 or bfloat16 rounds is another color by several levels.
  const DTensor x = widened(images);
  Hsv hsv = hsv_of(in_range(x, range, {0, 1}));
  const DTensor shift = draws.signs(0) * draws.each(1, arguments_.factor) * 0.5;
  DTensor h = hsv.hue + for_images(shift, x);
  h = ops::where(ops::greater(h, constant_like(h, 1)), h - 1, h);
  hsv.hue = ops::where(ops::less(h, constant_like(h, 0)), h + 1, h);
  return ops::cast(in_range(ops::clip(rgb_of(hsv), 0, 1), {0, 1}, range), images.dtype());
}

}  // namespace

RandomHue::RandomHue(const Factor& factor, const RandomHueOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomHueLayer>(RandomHueLayer::Arguments{options, factor})) {}

}  // namespace tessera
