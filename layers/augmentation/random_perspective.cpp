#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomPerspectiveOptions& o, const Visit& visit) {
  visit("interpolation", o.interpolation);
  visit("fill_value", o.fill_value);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomPerspectiveLayer final : public GeometricAugmentationLayer {
 public:
  RandomPerspectiveLayer(const Factor& factor, double scale,
                         const RandomPerspectiveOptions& options);
  std::string class_name() const override { return "RandomPerspective"; }
  Json config() const override {
    return layer_config(*this, {{"factor", factor_}, {"scale", scale_}}, options_);
  }
  int64_t draws(const Shape&) const override { return 10; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> factor_;
  double scale_;
  RandomPerspectiveOptions options_;
};

const RegisteredLayer registered_random_perspective("RandomPerspective", [](JsonObject& config) {
  const auto options = layer_options_from<RandomPerspectiveOptions>(config);
  const auto factor = config.take_optional<Factor>("factor");
  const double scale = config.take_optional<double>("scale").value_or(1);
  return RandomPerspective(factor.value_or(1.0), scale, options);
});

RandomPerspectiveLayer::RandomPerspectiveLayer(const Factor& factor, double scale,
                                               const RandomPerspectiveOptions& options)
    : GeometricAugmentationLayer("RandomPerspective", options, "constant"),
      factor_(factor_range(where(), "factor", factor, 0, 1)),
      scale_(scale),
      options_(options) {
  if (scale >= 0 && scale <= 1) return;
  throw ConfigError(where(), "scale lies in [0, 1]", str(scale),
                    "give the fraction of height and width that corners move by");
}

DTensor RandomPerspectiveLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  // The corners (0, 0), (w, 0), (0, h) and (w, h) move to (0, 0), (w · right, 0), (0, h · low) and
  // (w · x, h · y). The transform is the inverse of that map, which these four points determine.
  const auto moved = [&](int64_t i) { return draws.each(2 + i, 1 - scale_ / 2, 1 + scale_ / 2); };
  const DTensor right = moved(2), low = moved(5), x = moved(6), y = moved(7);
  const auto w = double(images[2] - 1), h = double(images[1] - 1);
  const DTensor c0 = w > 0 ? (y / low - 1) / (x * w) : x * 0;
  const DTensor c1 = h > 0 ? (x / right - 1) / (y * h) : y * 0;
  const DTensor a0 = c0 * w + ops::reciprocal(right), b1 = c1 * h + ops::reciprocal(low);
  const DTensor rows = transform_rows({a0, {}, {}, {}, b1, {}, c0, c1}, x);
  const DTensor share = draws.each(0, factor_[0], factor_[1]);
  const DTensor stays = x * 0 + 1;
  return ops::where(ops::less(draws.each(1), share), rows,
                    transform_rows({stays, {}, {}, {}, stays, {}, {}, {}}, x));
}

}  // namespace

RandomPerspective::RandomPerspective(const Factor& factor, double scale,
                                     const RandomPerspectiveOptions& options)
    : AugmentationHandle(std::make_shared<RandomPerspectiveLayer>(factor, scale, options)) {}

}  // namespace tessera
