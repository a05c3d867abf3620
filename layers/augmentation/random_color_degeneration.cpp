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

class RandomColorDegenerationLayer final
    : public AugmentationOf<RandomColorDegenerationLayer,
                            FactorArguments<RandomColorDegenerationOptions>> {
 public:
  static constexpr const char* keras_name = "RandomColorDegeneration";
  explicit RandomColorDegenerationLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, -1, 1);
  }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override;
};

const RegisteredLayerOf<RandomColorDegenerationLayer> registered_random_color_degeneration;

Shape RandomColorDegenerationLayer::transformed_shape(const Shape& images) const {
  check_rgb(where(), images);
  return images;
}

DTensor RandomColorDegenerationLayer::transform(const DTensor& images,
                                                const ImageDraws& draws) const {
  const DTensor share = for_images(draws.each(0, arguments_.factor), images);
  const std::vector<double>& range = arguments_.value_range;
  return ops::clip(images + share * (gray_of(images) - images), range[0], range[1]);
}

}  // namespace

RandomColorDegeneration::RandomColorDegeneration(const Factor& factor,
                                                 const RandomColorDegenerationOptions& options)
    : AugmentationHandle(std::make_shared<RandomColorDegenerationLayer>(
          RandomColorDegenerationLayer::Arguments{options, factor})) {}

}  // namespace tessera
