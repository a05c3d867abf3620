#include <tessera/layers/augmentation/color.hpp>

#include <cmath>
#include <numbers>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomPosterizationOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomPosterizationLayer final
    : public AugmentationOf<RandomPosterizationLayer, FactorArguments<RandomPosterizationOptions>> {
 public:
  static constexpr const char* keras_name = "RandomPosterization";
  explicit RandomPosterizationLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, 1, 8);
  }
  int64_t draws(const Shape&) const override { return is_random() ? 1 : 0; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  bool is_random() const { return arguments_.factor.values[0] != arguments_.factor.values[1]; }
};

const RegisteredLayerOf<RandomPosterizationLayer> registered_random_posterization;

DTensor RandomPosterizationLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor x = ops::clip(in_range(images, arguments_.value_range, bytes), 0, 255);
  const auto step_size = [](double bits) { return std::exp2(8 - bits); };
  DTensor step = constant_like(x, step_size(arguments_.factor.values[0]));
  if (is_random()) {
    const DTensor bits = ops::floor(draws.each(0, arguments_.factor));
    step = for_images(ops::round(ops::exp((-bits + 8) * std::numbers::ln2)), x);
  }
  return in_range(ops::floor(x / step) * step, bytes, arguments_.value_range);
}

}  // namespace

RandomPosterization::RandomPosterization(const Factor& factor,
                                         const RandomPosterizationOptions& options)
    : AugmentationHandle(std::make_shared<RandomPosterizationLayer>(
          RandomPosterizationLayer::Arguments{options, factor})) {}

}  // namespace tessera
