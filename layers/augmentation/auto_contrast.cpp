#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AutoContrastOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("data_format", o.data_format);
}

namespace {

class AutoContrastLayer final : public AugmentationOf<AutoContrastLayer, AutoContrastOptions> {
 public:
  static constexpr const char* keras_name = "AutoContrast";
  using AugmentationOf::AugmentationOf;
  int64_t draws(const Shape&) const override { return 0; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 protected:
  DTensor outside_training(const DTensor& images) const override;
};

const RegisteredLayerOf<AutoContrastLayer> registered_auto_contrast;

DTensor AutoContrastLayer::transform(const DTensor& images, const ImageDraws&) const {
  return outside_training(images);
}

DTensor AutoContrastLayer::outside_training(const DTensor& images) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor x = in_range(images, arguments_.value_range, bytes);
  const DTensor low = ops::min(x, {1, 2}, true), high = ops::max(x, {1, 2}, true);
  const DTensor differ = ops::greater(high, low);
  const DTensor scale = constant_like(x, 255) / ops::where(differ, high - low, constant_like(x, 1));
  const DTensor wide =
      in_range(ops::clip(x * scale - low * scale, 0, 255), bytes, arguments_.value_range);
  return ops::where(differ, wide, images);
}

}  // namespace

AutoContrast::AutoContrast(const AutoContrastOptions& options)
    : AugmentationHandle(std::make_shared<AutoContrastLayer>(options)) {}

}  // namespace tessera
