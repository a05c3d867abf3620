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

class RandomPosterizationLayer final : public AugmentationLayer {
 public:
  RandomPosterizationLayer(const Factor& factor, const RandomPosterizationOptions& options);
  std::string class_name() const override { return "RandomPosterization"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return factor_[0] == factor_[1] ? 0 : 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> factor_;
  RandomPosterizationOptions options_;
};

const RegisteredLayer registered_random_posterization(
    "RandomPosterization", [](JsonObject& config) {
      const auto options = layer_options_from<RandomPosterizationOptions>(config);
      return RandomPosterization(config.take<Factor>("factor"), options);
    });

RandomPosterizationLayer::RandomPosterizationLayer(const Factor& factor,
                                                   const RandomPosterizationOptions& options)
    : AugmentationLayer("RandomPosterization", options),
      factor_(factor_range(where(), "factor", factor, 1, 8)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

DTensor RandomPosterizationLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor x = ops::clip(in_range(images, options_.value_range, bytes), 0, 255);
  const auto step_size = [](double bits) { return std::exp2(8 - bits); };
  DTensor step = constant_like(x, step_size(factor_[0]));
  if (factor_[0] != factor_[1]) {
    const DTensor bits = ops::floor(draws.each(0, factor_[0], factor_[1]));
    step = for_images(ops::round(ops::exp((-bits + 8) * std::numbers::ln2)), x);
  }
  return in_range(ops::floor(x / step) * step, bytes, options_.value_range);
}

}  // namespace

RandomPosterization::RandomPosterization(const Factor& factor,
                                         const RandomPosterizationOptions& options)
    : AugmentationHandle(std::make_shared<RandomPosterizationLayer>(factor, options)) {}

}  // namespace tessera
