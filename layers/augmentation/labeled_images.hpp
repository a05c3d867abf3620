#pragma once

#include <ATen/core/Tensor.h>

namespace tessera {

/// Bounding boxes (boxes, 4) or (batch, boxes, 4), and their classes (boxes) or (batch, boxes).
/// Class -1 marks padding, which makes rows equally long, and boxes that were moved out of the
/// image.
struct BoundingBoxes {
  at::Tensor boxes = {};
  at::Tensor labels = {};
};

/// An image or a batch with its labels, bounding boxes and segmentation masks, which Keras' layers
/// take and return as a dict with these keys. Missing entries are undefined.
struct LabeledImages {
  at::Tensor images;                   ///< one image (three axes) or a batch (four axes)
  at::Tensor labels = {};              ///< labels of the images; (batch, classes) to mix them
  BoundingBoxes bounding_boxes = {};   ///< in the layers' bounding_box_format
  at::Tensor segmentation_masks = {};  ///< class of each pixel, with the images' axes
};

}  // namespace tessera
