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

class RandomSharpnessLayer final
    : public AugmentationOf<RandomSharpnessLayer, FactorArguments<RandomSharpnessOptions>> {
 public:
  static constexpr const char* keras_name = "RandomSharpness";
  explicit RandomSharpnessLayer(const Arguments& arguments) : AugmentationOf(arguments) {
    arguments_.factor = factor_range(where(), "factor", arguments.factor, 0, 1);
  }
  int64_t draws(const Shape&) const override { return 1; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<RandomSharpnessLayer> registered_random_sharpness;

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
  const DTensor weight = for_images(-draws.each(0, arguments_.factor) * 2 + 1, images);
  const std::vector<double>& range = arguments_.value_range;
  return ops::clip(images + weight * (smooth - images), range[0], range[1]);
}

}  // namespace

RandomSharpness::RandomSharpness(const Factor& factor, const RandomSharpnessOptions& options)
    : AugmentationHandle(std::make_shared<RandomSharpnessLayer>(
          RandomSharpnessLayer::Arguments{options, factor})) {}

}  // namespace tessera
