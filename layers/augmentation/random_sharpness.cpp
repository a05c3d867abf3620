#include <tessera/layers/augmentation/color.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandomSharpnessOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("data_format", o.data_format);
  visit("seed", o.seed);
}

namespace {

class RandomSharpnessLayer final : public AugmentationLayer {
 public:
  RandomSharpnessLayer(const Factor& factor, const RandomSharpnessOptions& options);
  std::string class_name() const override { return "RandomSharpness"; }
  Json config() const override { return layer_config(*this, {{"factor", factor_}}, options_); }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  std::array<double, 2> factor_;
  RandomSharpnessOptions options_;
};

const RegisteredLayer registered_random_sharpness("RandomSharpness", [](JsonObject& config) {
  const auto options = layer_options_from<RandomSharpnessOptions>(config);
  return RandomSharpness(config.take<Factor>("factor"), options);
});

RandomSharpnessLayer::RandomSharpnessLayer(const Factor& factor,
                                           const RandomSharpnessOptions& options)
    : AugmentationLayer("RandomSharpness", options),
      factor_(factor_range(where(), "factor", factor, 0, 1)),
      options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
}

/// Returns the sum of each pixel and its two neighbours along `axis`, which are 0 beyond the edges.
DTensor with_neighbours(const DTensor& x, int64_t axis) {
  const int64_t extent = x.shape()[static_cast<size_t>(axis)];
  const DTensor wider = ops::pad(x, axis, 1, 1);
  return ops::slice(wider, axis, 0, extent) + x + ops::slice(wider, axis, 2, extent);
}

DTensor RandomSharpnessLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  // A 3x3 kernel: 1/13 for each of the eight neighbours, 5/13 for the pixel itself.
  const DTensor smooth =
      with_neighbours(with_neighbours(images, 1), 2) * (1.0 / 13) + images * (4.0 / 13);
  const DTensor weight = for_images(-draws.each(0, factor_[0], factor_[1]) * 2 + 1, images);
  const std::vector<double>& range = options_.value_range;
  return ops::clip(images + weight * (smooth - images), range[0], range[1]);
}

}  // namespace

RandomSharpness::RandomSharpness(const Factor& factor, const RandomSharpnessOptions& options)
    : AugmentationHandle(std::make_shared<RandomSharpnessLayer>(factor, options)) {}

}  // namespace tessera
