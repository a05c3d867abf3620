#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomZoomArguments : RandomZoomOptions {
  Factor height_factor;
};

template <class Visit>
void fields(RandomZoomArguments& a, const Visit& visit) {
  RequiredOption height_factor{a.height_factor};
  visit("height_factor", height_factor);
  visit("width_factor", a.width_factor);
  visit("fill_mode", a.fill_mode);
  visit("interpolation", a.interpolation);
  visit("seed", a.seed);
  visit("fill_value", a.fill_value);
  visit("data_format", a.data_format);
}

class RandomZoomLayer final
    : public AugmentationOf<RandomZoomLayer, RandomZoomArguments, GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomZoom";
  explicit RandomZoomLayer(const RandomZoomArguments& arguments);
  int64_t draws(const Shape&) const override { return arguments_.width_factor ? 2 : 1; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;

 private:
  Factor height_, width_;  ///< ranges of the scale
};

const RegisteredLayerOf<RandomZoomLayer> registered_random_zoom;

Factor zoom_range(const std::string& where, const std::string& option, const Factor& factor) {
  for (const double number : factor.values) {
    if (number > -1) continue;
    throw ConfigError(where, str(option, " is above -1"), factor.json().dump(),
                      "zoom to some of the image");
  }
  return factor_range(where, option, factor, -1, 1);
}

RandomZoomLayer::RandomZoomLayer(const RandomZoomArguments& arguments) : AugmentationOf(arguments) {
  const auto one_plus = [](const Factor& range) {
    return Factor(1 + range.values[0], 1 + range.values[1]);
  };
  const Factor& factor = arguments.height_factor;
  height_ = one_plus(zoom_range(where(), "height_factor", factor));
  width_ = one_plus(zoom_range(where(), "width_factor", arguments.width_factor.value_or(factor)));
}

DTensor RandomZoomLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const DTensor of_y = draws.each(0, height_);
  const DTensor of_x = arguments_.width_factor ? draws.each(1, width_) : of_y;
  const double x = double(images[2] - 1) / 2, y = double(images[1] - 1) / 2;
  return transform_rows({of_x, {}, of_x * -x + x, {}, of_y, of_y * -y + y, {}, {}}, of_y);
}

}  // namespace

RandomZoom::RandomZoom(const Factor& height_factor, const RandomZoomOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomZoomLayer>(RandomZoomArguments{options, height_factor})) {}

}  // namespace tessera
