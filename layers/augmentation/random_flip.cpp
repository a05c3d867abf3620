#include <tessera/layers/augmentation/geometry.hpp>

#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomFlipArguments : RandomFlipOptions {
  std::string mode = "horizontal_and_vertical";
};

template <class Visit>
void fields(RandomFlipArguments& a, const Visit& visit) {
  visit("mode", a.mode);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class RandomFlipLayer final
    : public AugmentationOf<RandomFlipLayer, RandomFlipArguments, GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomFlip";
  explicit RandomFlipLayer(const RandomFlipArguments& arguments);
  int64_t draws(const Shape&) const override { return 1; }

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override {
    return mirrored(double(images[1] - 1), double(images[2] - 1), draws);
  }
  DTensor box_transforms(const Shape& images, const ImageDraws& draws) const override {
    return mirrored(double(images[1]), double(images[2]), draws);
  }

 private:
  /// Returns transforms that read y at bottom - y, and x at right - x.
  DTensor mirrored(double bottom, double right, const ImageDraws& draws) const;
};

const RegisteredLayerOf<RandomFlipLayer> registered_random_flip;

RandomFlipLayer::RandomFlipLayer(const RandomFlipArguments& arguments) : AugmentationOf(arguments) {
  set_moving({.nearest = true});
  const std::string& mode = arguments.mode;
  if (mode == "horizontal" || mode == "vertical" || mode == "horizontal_and_vertical") return;
  throw ConfigError(where(), "mode is \"horizontal\", \"vertical\" or \"horizontal_and_vertical\"",
                    in_quotes(mode), "leave it out for both");
}

DTensor RandomFlipLayer::mirrored(double bottom, double right, const ImageDraws& draws) const {
  // Keras flips for draws up to and including 1/2.
  const DTensor flips = draws.bernoulli(0, std::nextafter(0.5F, 1.0F));
  const DTensor stays = flips * 0 + 1, turns = flips * -2 + 1;
  const bool across = arguments_.mode != "vertical", down = arguments_.mode != "horizontal";
  return transform_rows({across ? turns : stays,
                         {},
                         flips * (across ? right : 0),
                         {},
                         down ? turns : stays,
                         flips * (down ? bottom : 0),
                         {},
                         {}},
                        flips);
}

}  // namespace

RandomFlip::RandomFlip(const std::string& mode, const RandomFlipOptions& options)
    : AugmentationHandle(std::make_shared<RandomFlipLayer>(RandomFlipArguments{options, mode})) {}

}  // namespace tessera
