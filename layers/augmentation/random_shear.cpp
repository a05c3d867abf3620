#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomShearArguments : RandomShearOptions {
  Factor x_factor, y_factor;
};

template <class Visit>
void fields(RandomShearArguments& a, const Visit& visit) {
  visit("x_factor", a.x_factor);
  visit("y_factor", a.y_factor);
  visit("interpolation", a.interpolation);
  visit("fill_mode", a.fill_mode);
  visit("fill_value", a.fill_value);
  visit("data_format", a.data_format);
  visit("seed", a.seed);
}

class RandomShearLayer final
    : public AugmentationOf<RandomShearLayer, RandomShearArguments, GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomShear";
  explicit RandomShearLayer(const RandomShearArguments& arguments);
  int64_t draws(const Shape&) const override { return 3; }

 protected:
  DTensor transforms(const Shape&, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomShearLayer> registered_random_shear;

RandomShearLayer::RandomShearLayer(const RandomShearArguments& arguments)
    : AugmentationOf(arguments) {
  arguments_.x_factor = factor_range(where(), "x_factor", arguments.x_factor, -1, 1);
  arguments_.y_factor = factor_range(where(), "y_factor", arguments.y_factor, -1, 1);
}

DTensor RandomShearLayer::transforms(const Shape&, const ImageDraws& draws) const {
  const DTensor sign = draws.signs(0);
  const DTensor of_y = draws.each(1, arguments_.y_factor) * sign;
  const DTensor of_x = draws.each(2, arguments_.x_factor) * sign;
  const DTensor stays = sign * 0 + 1;
  return transform_rows({stays, of_x, {}, of_y, stays, {}, {}, {}}, sign);
}

}  // namespace

RandomShear::RandomShear(const Factor& x_factor, const Factor& y_factor,
                         const RandomShearOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomShearLayer>(RandomShearArguments{options, x_factor, y_factor})) {}

}  // namespace tessera
