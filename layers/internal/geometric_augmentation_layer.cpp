#include <tessera/layers/internal/geometric_augmentation_layer.hpp>

#include <ATen/ATen.h>

#include <tessera/layers/internal/labeled_layer.hpp>

namespace tessera::detail {

namespace {

/// Returns the bounding boxes, (batch, boxes, 4) as "xyxy", of boxes after the inverse of the
/// transforms `rows`, (batch, 8).
at::Tensor transformed_bounds(const at::Tensor& boxes, const at::Tensor& rows) {
  const at::Tensor t = rows.to(at::kDouble).unsqueeze(2);
  const auto at_row = [&](int64_t i) { return t.select(1, i); };
  const at::Tensor a0 = at_row(0), a1 = at_row(1), a2 = at_row(2), b0 = at_row(3), b1 = at_row(4),
                   b2 = at_row(5), c0 = at_row(6), c1 = at_row(7);
  // All four corners, (batch, 4 · boxes). The adjugate replaces the inverse: its scale cancels
  // between numerators and denominator.
  const at::Tensor all = boxes.to(at::kDouble);
  const auto column = [&](int64_t i) { return all.select(2, i); };
  const at::Tensor x = at::cat({column(0), column(2), column(2), column(0)}, 1);
  const at::Tensor y = at::cat({column(1), column(1), column(3), column(3)}, 1);
  const at::Tensor k = x * (b0 * c1 - b1 * c0) + y * (a1 * c0 - a0 * c1) + (a0 * b1 - a1 * b0);
  const auto corners = [&](const at::Tensor& numerator) {
    // A singular transform has no inverse.
    return numerator.div(k).nan_to_num(0).view({all.size(0), 4, all.size(1)});
  };
  const at::Tensor to_x = corners(x * (b1 - b2 * c1) + y * (a2 * c1 - a1) + (a1 * b2 - a2 * b1));
  const at::Tensor to_y = corners(x * (b2 * c0 - b0) + y * (a0 - a2 * c0) + (a2 * b0 - a0 * b2));
  return at::stack({to_x.amin(1), to_y.amin(1), to_x.amax(1), to_y.amax(1)}, 2)
      .to(boxes.scalar_type());
}

}  // namespace

DTensor GeometricAugmentationLayer::transform(const DTensor& images,
                                              const ImageDraws& draws) const {
  return ops::affine_transform(images, transforms(images.shape(), draws), moving_);
}

DTensor GeometricAugmentationLayer::transform_masks(const DTensor& masks,
                                                    const ImageDraws& draws) const {
  ops::AffineTransformOptions nearest = moving_;
  nearest.nearest = true;
  const DTensor rows = transforms(masks.shape(), draws);
  return transformed_masks(
      masks, [&](const DTensor& x) { return ops::affine_transform(x, rows, nearest); });
}

BoundingBoxes GeometricAugmentationLayer::transform_boxes(const BoundingBoxes& boxes,
                                                          const Shape& images,
                                                          const ImageDraws& draws) const {
  const auto extent = [](const Shape& shape) {
    return ImageExtent{double(shape[1]), double(shape[2])};
  };
  const at::Tensor rows = box_transforms(images, draws).full();
  return transformed_boxes(
      boxes, box_format(), extent(images), extent(transformed_shape(images)),
      [&](const at::Tensor& corners) { return transformed_bounds(corners, rows); });
}

}  // namespace tessera::detail
