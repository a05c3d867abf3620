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

class RandomRotationLayer final : public GeometricAugmentationLayer {
 public:
  RandomRotationLayer(const Factor& factor, const RandomRotationOptions& options);
  std::string class_name() const override { return "RandomRotation"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> factor_;
  RandomRotationOptions options_;
};

const RegisteredLayer registered_random_rotation("RandomRotation", [](JsonObject& config) {
  const auto options = layer_options_from<RandomRotationOptions>(config);
  return RandomRotation(config.take<Factor>("factor"), options);
});

RandomRotationLayer::RandomRotationLayer(const Factor& factor, const RandomRotationOptions& options)
    : GeometricAugmentationLayer("RandomRotation", options, options.fill_mode),
      factor_(factor_range(where(), "factor", factor, -1, 1)),
      options_(options) {}

DTensor RandomRotationLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const double full = 2 * std::numbers::pi;
  const DTensor angle = draws.each(0, factor_[0] * full, factor_[1] * full);
  const DTensor cosine = ops::cos(angle), sine = ops::sin(angle);
  const double x = double(images[2] - 1) / 2, y = double(images[1] - 1) / 2;
  const DTensor to_x = cosine * -x + sine * y + x, to_y = sine * -x - cosine * y + y;
  return transform_rows({cosine, -sine, to_x, sine, cosine, to_y, {}, {}}, angle);
}

}  // namespace

RandomRotation::RandomRotation(const Factor& factor, const RandomRotationOptions& options)
    : AugmentationHandle(std::make_shared<RandomRotationLayer>(factor, options)) {}

}  // namespace tessera
