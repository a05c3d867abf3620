#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomInvertArguments : RandomInvertOptions {
  Factor factor = 1.0;
};

template <class Visit>
void fields(RandomInvertArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("value_range", a.value_range);
  visit("data_format", a.data_format);
  visit("seed", a.seed);
}

class RandomInvertLayer final : public AugmentationOf<RandomInvertLayer, RandomInvertArguments> {
 public:
  static constexpr const char* keras_name = "RandomInvert";
  explicit RandomInvertLayer(const RandomInvertArguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  }
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomInvertLayer> registered_random_invert;

DTensor RandomInvertLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double>& range = arguments_.value_range;
  const DTensor inverted = as_images(ops::less(draws.each(1), draws.each(0, arguments_.factor)));
  return ops::where(inverted, -images + (range[0] + range[1]), images);
}

}  // namespace

RandomInvert::RandomInvert(const Factor& factor, const RandomInvertOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomInvertLayer>(RandomInvertArguments{options, factor})) {}

}  // namespace tessera
