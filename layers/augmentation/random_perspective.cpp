#include <tessera/layers/augmentation/geometry.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomPerspectiveArguments : RandomPerspectiveOptions {
  Factor factor = 1.0;
  double scale = 1;
};

template <class Visit>
void fields(RandomPerspectiveArguments& a, const Visit& visit) {
  visit("factor", a.factor);
  visit("scale", a.scale);
  visit("interpolation", a.interpolation);
  visit("fill_value", a.fill_value);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class RandomPerspectiveLayer final
    : public AugmentationOf<RandomPerspectiveLayer, RandomPerspectiveArguments,
                            GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomPerspective";
  explicit RandomPerspectiveLayer(const RandomPerspectiveArguments& arguments);
  int64_t draws(const Shape&) const override { return 10; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomPerspectiveLayer> registered_random_perspective;

RandomPerspectiveLayer::RandomPerspectiveLayer(const RandomPerspectiveArguments& arguments)
    : AugmentationOf(arguments) {
  set_moving(affine_options(where(), "constant", arguments.interpolation, arguments.fill_value));
  arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  const double scale = arguments.scale;
  if (scale >= 0 && scale <= 1) return;
  throw ConfigError(where(), "scale lies in [0, 1]", str(scale),
                    "give the fraction of height and width that corners move by");
}

DTensor RandomPerspectiveLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  // The corners (0, 0), (w, 0), (0, h) and (w, h) move to (0, 0), (w · right, 0), (0, h · low) and
  // (w · x, h · y). The transform is the inverse of that map, which these four points determine.
  const double half = arguments_.scale / 2;
  const auto moved = [&](int64_t i) { return draws.each(2 + i, 1 - half, 1 + half); };
  const DTensor right = moved(2), low = moved(5), x = moved(6), y = moved(7);
  const auto w = double(images[2] - 1), h = double(images[1] - 1);
  const DTensor c0 = w > 0 ? (y / low - 1) / (x * w) : x * 0;
  const DTensor c1 = h > 0 ? (x / right - 1) / (y * h) : y * 0;
  const DTensor a0 = c0 * w + ops::reciprocal(right), b1 = c1 * h + ops::reciprocal(low);
  const DTensor rows = transform_rows({a0, {}, {}, {}, b1, {}, c0, c1}, x);
  const DTensor share = draws.each(0, arguments_.factor);
  const DTensor stays = x * 0 + 1;
  return ops::where(ops::less(draws.each(1), share), rows,
                    transform_rows({stays, {}, {}, {}, stays, {}, {}, {}}, x));
}

}  // namespace

RandomPerspective::RandomPerspective(const Factor& factor, double scale,
                                     const RandomPerspectiveOptions& options)
    : AugmentationHandle(std::make_shared<RandomPerspectiveLayer>(
          RandomPerspectiveArguments{options, factor, scale})) {}

}  // namespace tessera
