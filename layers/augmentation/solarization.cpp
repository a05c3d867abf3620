#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SolarizationOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class SolarizationLayer final : public AugmentationLayer {
 public:
  SolarizationLayer(const Factor& addition_factor, const Factor& threshold_factor,
                    const SolarizationOptions& options);
  std::string class_name() const override { return "Solarization"; }
  Json config() const override {
    return layer_config(*this, {{"addition_factor", addition_}, {"threshold_factor", threshold_}},
                        options_);
  }
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> addition_, threshold_;
  SolarizationOptions options_;
};

const RegisteredLayer registered_solarization("Solarization", [](JsonObject& config) {
  const auto options = layer_options_from<SolarizationOptions>(config);
  const auto addition = config.take_optional<Factor>("addition_factor");
  const auto threshold = config.take_optional<Factor>("threshold_factor");
  return Solarization(addition.value_or(0.0), threshold.value_or(0.0), options);
});

SolarizationLayer::SolarizationLayer(const Factor& addition_factor, const Factor& threshold_factor,
                                     const SolarizationOptions& options)
    : AugmentationLayer("Solarization", options),
      addition_(factor_range(where(), "addition_factor", addition_factor, 0, 1)),
      threshold_(factor_range(where(), "threshold_factor", threshold_factor, 0, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

DTensor SolarizationLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor more = draws.each(0, addition_[0], addition_[1] * 255);
  const DTensor least = draws.each(1, threshold_[0], threshold_[1] * 255);
  DTensor x = in_range(images, options_.value_range, bytes);
  x = ops::clip(x + for_images(more, x), 0, 255);
  x = ops::where(ops::less(x, for_images(least, x)), x, -x + 255);
  return in_range(x, bytes, options_.value_range);
}

}  // namespace

Solarization::Solarization(const Factor& addition_factor, const Factor& threshold_factor,
                           const SolarizationOptions& options)
    : AugmentationHandle(
          std::make_shared<SolarizationLayer>(addition_factor, threshold_factor, options)) {}

}  // namespace tessera
