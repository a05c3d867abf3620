#include <tessera/layers/augmentation/rand_augment.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/layers/augmentation/color.hpp>
#include <tessera/layers/augmentation/geometry.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RandAugmentOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("num_ops", o.num_ops);
  visit("factor", o.factor);
  visit("interpolation", o.interpolation);
  visit("seed", o.seed);
  visit("data_format", o.data_format);
}

namespace {

class RandAugmentLayer final : public AugmentationOf<RandAugmentLayer, RandAugmentOptions> {
 public:
  static constexpr const char* keras_name = "RandAugment";
  explicit RandAugmentLayer(const RandAugmentOptions& options);
  int64_t draws(const Shape& images) const override;
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;

 protected:
  Shape transformed_shape(const Shape& images) const override {
    check_rgb(where(), images);
    return images;
  }
  bool draws_for_batch() const override { return true; }

 private:
  /// Calls f(augmentation, its draws) for each drawn augmentation, in order; `draws` must be on the
  /// host.
  template <class Function>
  void for_each_drawn(const Shape& images, const ImageDraws& draws, const Function& f) const;

  std::vector<std::shared_ptr<const AugmentationLayer>> augmentations_;
};

const RegisteredLayerOf<RandAugmentLayer> registered_rand_augment;

RandAugmentLayer::RandAugmentLayer(const RandAugmentOptions& options) : AugmentationOf(options) {
  if (options.num_ops < 0) {
    throw ConfigError(where(), "num_ops is at least 0", str(options.num_ops),
                      "give the number of augmentations");
  }
  arguments_.factor = factor_range(where(), "factor", options.factor, 0, 1);
  const Factor& factor = arguments_.factor;
  const std::string &interpolation = options.interpolation, &boxes = options.bounding_box_format;
  const std::vector<double>& value_range = arguments_.value_range;
  const double bits =
      std::max<double>(1, static_cast<double>(static_cast<int64_t>(8 * factor.values[1])));
  const std::vector<LayerHandle> augmentations = {
      RandomShear(
          factor, factor,
          {.interpolation = interpolation, .bounding_box_format = boxes, .name = options.name}),
      RandomTranslation(
          factor, factor,
          {.interpolation = interpolation, .bounding_box_format = boxes, .name = options.name}),
      RandomRotation(
          factor,
          {.interpolation = interpolation, .bounding_box_format = boxes, .name = options.name}),
      RandomBrightness(factor, {.value_range = value_range, .name = options.name}),
      RandomColorDegeneration(factor, {.value_range = value_range, .name = options.name}),
      RandomContrast(factor, {.value_range = value_range, .name = options.name}),
      RandomSharpness(factor, {.value_range = value_range, .name = options.name}),
      RandomPosterization(bits, {.value_range = value_range, .name = options.name}),
      Solarization(factor, factor, {.value_range = value_range, .name = options.name}),
      AutoContrast({.value_range = value_range, .name = options.name}),
      Equalization({.value_range = value_range, .name = options.name})};
  for (const LayerHandle& augmentation : augmentations)
    augmentations_.push_back(as_augmentation(augmentation));
}

int64_t RandAugmentLayer::draws(const Shape& images) const {
  int64_t count = arguments_.num_ops;
  for (const auto& augmentation : augmentations_) count += augmentation->draws(images);
  return count;
}

DTensor RandAugmentLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  DTensor x = images;
  for (int64_t i = 0; i < arguments_.num_ops; ++i) {
    const DTensor draw = draws.shared(i, 0, static_cast<double>(augmentations_.size()));
    const DTensor index = as_images(ops::floor(draw));
    int64_t used = arguments_.num_ops;
    for (size_t k = 0; k < augmentations_.size(); ++k) {
      const DTensor selected = ops::equal(index, constant_like(index, static_cast<double>(k)));
      x = ops::where(selected, augmentations_[k]->transform(x, draws.from(used)), x);
      used += augmentations_[k]->draws(images.shape());
    }
  }
  return x;
}

template <class Function>
void RandAugmentLayer::for_each_drawn(const Shape& images, const ImageDraws& draws,
                                      const Function& f) const {
  for (int64_t i = 0; i < arguments_.num_ops; ++i) {
    const DTensor draw = ops::floor(draws.shared(i, 0, static_cast<double>(augmentations_.size())));
    const auto index = draw.full().item<int64_t>();
    int64_t used = arguments_.num_ops;
    for (int64_t k = 0; k < index; ++k) used += augmentations_[size_t(k)]->draws(images);
    f(*augmentations_[size_t(index)], draws.from(used));
  }
}

DTensor RandAugmentLayer::transform_masks(const DTensor& masks, const ImageDraws& draws) const {
  DTensor result = masks;
  for_each_drawn(masks.shape(), draws,
                 [&](const AugmentationLayer& augmentation, const ImageDraws& augmentation_draws) {
                   result = augmentation.transform_masks(result, augmentation_draws);
                 });
  return result;
}

BoundingBoxes RandAugmentLayer::transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                                const ImageDraws& draws) const {
  BoundingBoxes result = boxes;
  for_each_drawn(images, draws,
                 [&](const AugmentationLayer& augmentation, const ImageDraws& augmentation_draws) {
                   result = augmentation.transform_boxes(result, images, augmentation_draws);
                 });
  return result;
}

}  // namespace

RandAugment::RandAugment(const RandAugmentOptions& options)
    : AugmentationHandle(std::make_shared<RandAugmentLayer>(options)) {}

}  // namespace tessera
