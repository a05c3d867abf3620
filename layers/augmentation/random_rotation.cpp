#include <tessera/layers/augmentation/geometry.hpp>

#include <numbers>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomRotationOptions& o, const Visit& visit) {
  visit("fill_mode", o.fill_mode);
  visit("interpolation", o.interpolation);
  visit("seed", o.seed);
  visit("fill_value", o.fill_value);
  visit("data_format", o.data_format);
}

namespace {

class RandomRotationLayer final
    : public AugmentationOf<RandomRotationLayer, FactorArguments<RandomRotationOptions>,
                            GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomRotation";
  explicit RandomRotationLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, -1, 1);
  }
  int64_t draws(const Shape&) const override { return 1; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomRotationLayer> registered_random_rotation;

DTensor RandomRotationLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const double full = 2 * std::numbers::pi;
  const std::vector<double>& factor = arguments_.factor.values;
  const DTensor angle = draws.each(0, factor[0] * full, factor[1] * full);
  const DTensor cosine = ops::cos(angle), sine = ops::sin(angle);
  const double x = double(images[2] - 1) / 2, y = double(images[1] - 1) / 2;
  const DTensor to_x = cosine * -x + sine * y + x, to_y = sine * -x - cosine * y + y;
  return transform_rows({cosine, -sine, to_x, sine, cosine, to_y, {}, {}}, angle);
}

}  // namespace

RandomRotation::RandomRotation(const Factor& factor, const RandomRotationOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomRotationLayer>(RandomRotationLayer::Arguments{options, factor})) {}

}  // namespace tessera
