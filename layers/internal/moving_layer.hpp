#pragma once

#include <string>

#include <tessera/framework/ops/affine_transform.hpp>
#include <tessera/layers/internal/augmentation.hpp>

namespace tessera::detail {

/// A layer that moves the cells of images, and masks and boxes with them. What is left to a derived
/// class beside an AugmentationLayer's: where its cells come from.
class MovingLayer : public AugmentationLayer {
 public:
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
  DTensor transform_masks(const DTensor& masks, const ImageDraws& draws) const override;
  BoundingBoxes transform_boxes(const BoundingBoxes& boxes, const Shape& images,
                                const ImageDraws& draws) const override;

 protected:
  /// Cells are read as these options say.
  template <class Options>
  MovingLayer(const std::string& kind, const Options& options,
              const ops::AffineTransformOptions& moving)
      : AugmentationLayer(kind, options), moving_(moving) {}
  /// By interpolation and fill_value of the options. Throws ConfigError naming one of them.
  template <class Options>
  MovingLayer(const std::string& kind, const Options& options, const std::string& fill_mode)
      : AugmentationLayer(kind, options),
        moving_(moving_options(where(), fill_mode, options.interpolation, options.fill_value)) {}

  /// Rows (batch, 8) of ops::affine_transform, which lead from the cells that are made to those of
  /// the given images, (batch, height, width, channels).
  virtual DTensor transforms(const Shape& images, const ImageDraws& draws) const = 0;
  /// The same for the corners of boxes. Keras takes those of cells, though a box that holds all of
  /// an image ends at its width and height and not at the last cell's number.
  virtual DTensor box_transforms(const Shape& images, const ImageDraws& draws) const {
    return transforms(images, draws);
  }

 private:
  ops::AffineTransformOptions moving_;
};

}  // namespace tessera::detail
