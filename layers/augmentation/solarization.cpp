#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

namespace {

struct SolarizationArguments : SolarizationOptions {
  Factor addition_factor, threshold_factor;
};

template <class Visit>
void fields(SolarizationArguments& a, const Visit& visit) {
  visit("addition_factor", a.addition_factor);
  visit("threshold_factor", a.threshold_factor);
  visit("value_range", a.value_range);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class SolarizationLayer final : public AugmentationOf<SolarizationLayer, SolarizationArguments> {
 public:
  static constexpr const char* keras_name = "Solarization";
  explicit SolarizationLayer(const SolarizationArguments& arguments);
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<SolarizationLayer> registered_solarization;

SolarizationLayer::SolarizationLayer(const SolarizationArguments& arguments)
    : AugmentationOf(arguments) {
  arguments_.addition_factor =
      factor_range(where(), "addition_factor", arguments.addition_factor, 0, 1);
  arguments_.threshold_factor =
      factor_range(where(), "threshold_factor", arguments.threshold_factor, 0, 1);
}

DTensor SolarizationLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  const std::vector<double> bytes = {0, 255};
  const std::vector<double>& addition = arguments_.addition_factor.values;
  const std::vector<double>& threshold = arguments_.threshold_factor.values;
  const DTensor more = draws.each(0, addition[0], addition[1] * 255);
  const DTensor least = draws.each(1, threshold[0], threshold[1] * 255);
  DTensor x = in_range(images, arguments_.value_range, bytes);
  x = ops::clip(x + for_images(more, x), 0, 255);
  x = ops::where(ops::less(x, for_images(least, x)), x, -x + 255);
  return in_range(x, bytes, arguments_.value_range);
}

}  // namespace

Solarization::Solarization(const Factor& addition_factor, const Factor& threshold_factor,
                           const SolarizationOptions& options)
    : AugmentationHandle(std::make_shared<SolarizationLayer>(
          SolarizationArguments{options, addition_factor, threshold_factor})) {}

}  // namespace tessera
