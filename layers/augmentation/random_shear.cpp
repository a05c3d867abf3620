#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomShearOptions& o, const Visit& visit) {
  visit("interpolation", o.interpolation);
  visit("fill_mode", o.fill_mode);
  visit("fill_value", o.fill_value);
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomShearLayer final : public GeometricAugmentationLayer {
 public:
  RandomShearLayer(const Factor& x_factor, const Factor& y_factor,
                   const RandomShearOptions& options);
  std::string class_name() const override { return "RandomShear"; }
  Json config() const override {
    return layer_config(*this, {{"x_factor", x_factor_}, {"y_factor", y_factor_}}, options_);
  }
  int64_t draws(const Shape&) const override { return 3; }

 protected:
  DTensor transforms(const Shape&, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> x_factor_, y_factor_;
  RandomShearOptions options_;
};

const RegisteredLayer registered_random_shear("RandomShear", [](JsonObject& config) {
  const auto options = layer_options_from<RandomShearOptions>(config);
  const auto x_factor = config.take_optional<Factor>("x_factor");
  const auto y_factor = config.take_optional<Factor>("y_factor");
  return RandomShear(x_factor.value_or(0.0), y_factor.value_or(0.0), options);
});

RandomShearLayer::RandomShearLayer(const Factor& x_factor, const Factor& y_factor,
                                   const RandomShearOptions& options)
    : GeometricAugmentationLayer("RandomShear", options, options.fill_mode),
      x_factor_(factor_range(where(), "x_factor", x_factor, -1, 1)),
      y_factor_(factor_range(where(), "y_factor", y_factor, -1, 1)),
      options_(options) {}

DTensor RandomShearLayer::transforms(const Shape&, const ImageDraws& draws) const {
  const DTensor sign = draws.signs(0);
  const DTensor of_y = draws.each(1, y_factor_[0], y_factor_[1]) * sign;
  const DTensor of_x = draws.each(2, x_factor_[0], x_factor_[1]) * sign;
  const DTensor stays = sign * 0 + 1;
  return transform_rows({stays, of_x, {}, of_y, stays, {}, {}, {}}, sign);
}

}  // namespace

RandomShear::RandomShear(const Factor& x_factor, const Factor& y_factor,
                         const RandomShearOptions& options)
    : AugmentationHandle(std::make_shared<RandomShearLayer>(x_factor, y_factor, options)) {}

}  // namespace tessera
