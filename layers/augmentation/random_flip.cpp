#include <tessera/layers/augmentation/geometry.hpp>

#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomFlipOptions& o, const Visit& visit) {
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandomFlipLayer final : public GeometricAugmentationLayer {
 public:
  RandomFlipLayer(const std::string& mode, const RandomFlipOptions& options);
  std::string class_name() const override { return "RandomFlip"; }
  Json config() const override { return layer_config(*this, {{"mode", mode_}}, options_); }
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

  std::string mode_;
  RandomFlipOptions options_;
};

const RegisteredLayer registered_random_flip("RandomFlip", [](JsonObject& config) {
  const auto options = layer_options_from<RandomFlipOptions>(config);
  const auto mode = config.take_optional<std::string>("mode");
  return RandomFlip(mode.value_or("horizontal_and_vertical"), options);
});

RandomFlipLayer::RandomFlipLayer(const std::string& mode, const RandomFlipOptions& options)
    : GeometricAugmentationLayer("RandomFlip", options, {.nearest = true}),
      mode_(mode),
      options_(options) {
  if (mode == "horizontal" || mode == "vertical" || mode == "horizontal_and_vertical") return;
  throw ConfigError(where(), "mode is \"horizontal\", \"vertical\" or \"horizontal_and_vertical\"",
                    in_quotes(mode), "leave it out for both");
}

DTensor RandomFlipLayer::mirrored(double bottom, double right, const ImageDraws& draws) const {
  // Keras flips for draws up to and including 1/2.
  const DTensor flips = draws.bernoulli(0, std::nextafter(0.5F, 1.0F));
  const DTensor stays = flips * 0 + 1, turns = flips * -2 + 1;
  const bool across = mode_ != "vertical", down = mode_ != "horizontal";
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
    : AugmentationHandle(std::make_shared<RandomFlipLayer>(mode, options)) {}

}  // namespace tessera
