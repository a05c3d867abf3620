#pragma once

#include <string>

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
  /// `moving`: interpolation and fill mode.
  template <class Options>
  GeometricAugmentationLayer(const std::string& kind, const Options& options,
                             const ops::AffineTransformOptions& moving)
      : AugmentationLayer(kind, options), moving_(moving) {}
  /// Takes interpolation and fill_value from the options. Throws ConfigError naming one of them.
  template <class Options>
  GeometricAugmentationLayer(const std::string& kind, const Options& options,
                             const std::string& fill_mode)
      : AugmentationLayer(kind, options),
        moving_(affine_options(where(), fill_mode, options.interpolation, options.fill_value)) {}

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
