#pragma once

#include <tessera/framework/ops/affine_transform.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera::detail {

/// A layer that moves the pixels of images, and masks and boxes with them. Besides an
/// AugmentationLayer's functions, a derived class defines transforms().
class GeometricAugmentationLayer : public AugmentationLayer {
 public:
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;

 protected:
  using AugmentationLayer::AugmentationLayer;
  /// Sets interpolation and fill mode; AugmentationOf does so for layers with these options.
  void set_moving(const ops::AffineTransformOptions& moving) { moving_ = moving; }

  /// Returns the rows (batch, 8) of ops::affine_transform, which map output pixels to pixels of the
  /// input images, (batch, height, width, channels).
  virtual DTensor transforms(const Shape& images, const ImageDraws& draws) const = 0;
  /// Returns transforms for the corners of boxes. Default: transforms(), like Keras, although a box
  /// around the whole image ends at its width and height rather than at the last pixel's index.
  virtual DTensor box_transforms(const Shape& images, const ImageDraws& draws) const {
    return transforms(images, draws);
  }

 private:
  ops::AffineTransformOptions moving_;
};

}  // namespace tessera::detail
