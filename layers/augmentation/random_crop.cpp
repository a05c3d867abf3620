#include <tessera/layers/augmentation/geometry.hpp>

#include <algorithm>
#include <array>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/image_size.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

namespace tessera {

using namespace detail;

namespace {

struct RandomCropArguments : RandomCropOptions {
  int64_t height = 0, width = 0;
};

template <class Visit>
void fields(RandomCropArguments& a, const Visit& visit) {
  ExtentOption height{a.height}, width{a.width};
  visit("height", height);
  visit("width", width);
  visit("seed", a.seed);
  visit("data_format", a.data_format);
}

class RandomCropLayer final
    : public AugmentationOf<RandomCropLayer, RandomCropArguments, GeometricAugmentationLayer> {
 public:
  static constexpr const char* keras_name = "RandomCrop";
  explicit RandomCropLayer(const RandomCropArguments& arguments);
  int64_t draws(const Shape&) const override { return 2; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;

 protected:
  DTensor transforms(const Shape& images, const ImageDraws& draws) const override;
  DTensor box_transforms(const Shape& images, const ImageDraws& draws) const override;
  Shape transformed_shape(const Shape& images) const override {
    return {images[0], arguments_.height, arguments_.width, images[3]};
  }
  DTensor outside_training(const DTensor& images) const override {
    return resized(center_crop(images), {arguments_.height, arguments_.width}, "bilinear");
  }
  bool draws_for_batch() const override { return true; }

 private:
  /// Whether the images are larger than the crop in both axes.
  bool larger_than_crop(const Shape& images) const {
    return images[1] > arguments_.height && images[2] > arguments_.width;
  }
  /// Returns top, left, height and width of the centre crop.
  std::array<int64_t, 4> center_crop(const Shape& images) const;
  DTensor center_crop(const DTensor& images) const;
};

const RegisteredLayerOf<RandomCropLayer> registered_random_crop;

RandomCropLayer::RandomCropLayer(const RandomCropArguments& arguments) : AugmentationOf(arguments) {
  const int64_t height = arguments.height, width = arguments.width;
  set_moving({.nearest = true, .size = {{height, width}}});
  if (height > 0 && width > 0) return;
  throw ConfigError(where(), "height and width are at least 1", str(height, " and ", width),
                    "give the size of the crop");
}

DTensor RandomCropLayer::transform(const DTensor& images, const ImageDraws& draws) const {
  return larger_than_crop(images.shape()) ? GeometricAugmentationLayer::transform(images, draws)
                                          : outside_training(images);
}

DTensor RandomCropLayer::transform_masks(const DTensor& masks, const ImageDraws& draws) const {
  if (larger_than_crop(masks.shape()))
    return GeometricAugmentationLayer::transform_masks(masks, draws);
  return resized(center_crop(masks), {arguments_.height, arguments_.width}, "nearest");
}

DTensor RandomCropLayer::transforms(const Shape& images, const ImageDraws& draws) const {
  const DTensor none = draws.each(0) * 0, stays = none + 1;
  const DTensor top =
      none + ops::floor(draws.shared(0, 0, double(images[1] - arguments_.height + 1)));
  const DTensor left =
      none + ops::floor(draws.shared(1, 0, double(images[2] - arguments_.width + 1)));
  return transform_rows({stays, {}, left, {}, stays, top, {}, {}}, none);
}

DTensor RandomCropLayer::box_transforms(const Shape& images, const ImageDraws& draws) const {
  if (larger_than_crop(images)) return transforms(images, draws);
  const auto [top, left, h, w] = center_crop(images);
  const DTensor none = draws.each(0) * 0;
  return transform_rows({none + double(w) / double(arguments_.width),
                         {},
                         none + double(left),
                         {},
                         none + double(h) / double(arguments_.height),
                         none + double(top),
                         {},
                         {}},
                        none);
}

std::array<int64_t, 4> RandomCropLayer::center_crop(const Shape& images) const {
  const int64_t h = images[1], w = images[2];
  const int64_t crop_h = std::clamp<int64_t>(w * arguments_.height / arguments_.width, 1, h);
  const int64_t crop_w = std::clamp<int64_t>(h * arguments_.width / arguments_.height, 1, w);
  const int64_t top = (h - crop_h) / 2, left = (w - crop_w) / 2;
  // Keras slices (height, width) from the crop's corner; the image's border may cut the slice.
  return {top, left, std::min(arguments_.height, h - top), std::min(arguments_.width, w - left)};
}

DTensor RandomCropLayer::center_crop(const DTensor& images) const {
  const auto [top, left, h, w] = center_crop(images.shape());
  return ops::slice(ops::slice(images, 1, top, h), 2, left, w);
}

}  // namespace

RandomCrop::RandomCrop(int64_t height, int64_t width, const RandomCropOptions& options)
    : AugmentationHandle(
          std::make_shared<RandomCropLayer>(RandomCropArguments{options, height, width})) {}

}  // namespace tessera
