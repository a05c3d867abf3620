#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomZoomOptions& o, const Visit& visit) {
  visit("width_factor", o.width_factor);
  visit("fill_mode", o.fill_mode);
  visit("interpolation", o.interpolation);
  visit("seed", o.seed);
  visit("fill_value", o.fill_value);
  visit("data_format", o.data_format);
}

namespace {

class RandomZoomLayer final : public GeometricAugmentationLayer {
 public:
  RandomZoomLayer(const Factor& height_factor, const RandomZoomOptions& options);
  std::string class_name() const override { return "RandomZoom"; }
  Json config() const override {
    return layer_config(*this, {{"height_factor", height_factor_.json()}}, options_);
  }
  int64_t draws(const Shape&) const override { return options_.width_factor ? 2 : 1; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;

 private:
  Factor height_factor_;
  RandomZoomOptions options_;
  std::array<double, 2> height_, width_;
};

const RegisteredLayer registered_random_zoom("RandomZoom", [](JsonObject& config) {
  const auto options = layer_options_from<RandomZoomOptions>(config);
  return RandomZoom(config.take<Factor>("height_factor"), options);
});

std::array<double, 2> zoom_range(const std::string& where, const std::string& option,
                                 const Factor& factor) {
  for (const double number : factor.values) {
    if (number > -1) continue;
    throw ConfigError(where, str(option, " is above -1"), factor.json().dump(),
                      "zoom to some of the image");
  }
  return factor_range(where, option, factor, -1, 1);
}

RandomZoomLayer::RandomZoomLayer(const Factor& height_factor, const RandomZoomOptions& options)
    : GeometricAugmentationLayer("RandomZoom", options, options.fill_mode),
      height_factor_(height_factor),
      options_(options),
      height_(zoom_range(where(), "height_factor", height_factor)),
      width_(zoom_range(where(), "width_factor", options.width_factor.value_or(height_factor))) {}

DTensor RandomZoomLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const DTensor of_y = draws.each(0, 1 + height_[0], 1 + height_[1]);
  const DTensor of_x = options_.width_factor ? draws.each(1, 1 + width_[0], 1 + width_[1]) : of_y;
  const double x = double(images[2] - 1) / 2, y = double(images[1] - 1) / 2;
  return transform_rows({of_x, {}, of_x * -x + x, {}, of_y, of_y * -y + y, {}, {}}, of_y);
}

}  // namespace

RandomZoom::RandomZoom(const Factor& height_factor, const RandomZoomOptions& options)
    : AugmentationHandle(std::make_shared<RandomZoomLayer>(height_factor, options)) {}

}  // namespace tessera
