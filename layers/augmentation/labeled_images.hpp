#pragma once

#include <ATen/core/Tensor.h>

namespace tessera {

namespace detail {

/// Boxes (boxes, 4), or (batch, boxes, 4), and the class of each, (boxes) or (batch, boxes). A box
/// of class -1 is none: it fills a row up to the number of boxes that others have, or lay where an
/// image ends now.
struct BoundingBoxes {
  at::Tensor boxes = {};
  at::Tensor labels = {};
};

}  // namespace detail

/// An image, or a batch of them, with what follows where a layer moves or mixes it: what Keras'
/// layers take and give as a dict of these keys. What is left out stays undefined.
struct LabeledImages {
  at::Tensor images;                          ///< of three axes, or of four with a batch
  at::Tensor labels = {};                     ///< of the images, (batch, classes) where they mix
  detail::BoundingBoxes bounding_boxes = {};  ///< in the layers' bounding_box_format
  at::Tensor segmentation_masks = {};         ///< the class of each cell, with axes as the images
};

}  // namespace tessera
