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

class RandomContrastLayer final
    : public AugmentationOf<RandomContrastLayer, FactorArguments<RandomContrastOptions>> {
 public:
  static constexpr const char* keras_name = "RandomContrast";
  explicit RandomContrastLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomContrastLayer> registered_random_contrast;

DTensor RandomContrastLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double>& factor = arguments_.factor.values;
  const DTensor contrast = for_images(draws.each(0, 1 - factor[0], 1 + factor[1]), images);
  const DTensor mean = ops::mean(images, {1, 2}, true);
  const std::vector<double>& range = arguments_.value_range;
  return ops::clip((images - mean) * contrast + mean, range[0], range[1]);
}

}  // namespace

RandomContrast::RandomContrast(const Factor& factor, const RandomContrastOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomContrastLayer>(RandomContrastLayer::Arguments{options, factor})) {}

}  // namespace tessera
