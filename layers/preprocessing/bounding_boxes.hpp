#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/labeled_images.hpp>

/// Boxes in images, of the host (keras.utils.bounding_boxes). Boxes are (boxes, 4) or (batch,
/// boxes, 4); what is not float64 is computed in float32. A format names the four numbers, in large
/// or small letters: "xyxy" (left, top, right, bottom), "yxyx", "xywh" (left, top, width, height),
/// "center_xywh", "center_yxhw" in cells, and "rel_xyxy", "rel_yxyx", "rel_xywh" and
/// "rel_center_xywh" in shares of the image's width and height.
///
///     at::Tensor boxes = at::tensor({30.F, 20.F, 60.F, 40.F}).view({1, 4});
///     at::Tensor shares = bounding_boxes::convert_format(boxes, "xyxy", "rel_xywh", 100, 200);
namespace tessera::bounding_boxes {

/// The boxes in another format. Of `height` and `width` a format in shares needs both. Throws
/// ConfigError for an unknown format and without them, ShapeError unless the last extent is 4.
at::Tensor convert_format(const at::Tensor& boxes, const std::string& source,
                          const std::string& target, double height = 0, double width = 0);

/// The parts of boxes in "xyxy" or "rel_xyxy" that lie in the image; where nothing is left the
/// label is -1. Throws as convert_format().
detail::BoundingBoxes clip_to_image_size(const detail::BoundingBoxes& boxes, double height,
                                         double width,
                                         const std::string& bounding_box_format = "xyxy");

/// Boxes in "xyxy" within a part of the image of that height and width, and of an image with more
/// above and to the left.
at::Tensor crop(const at::Tensor& boxes, double top, double left, double height, double width);
at::Tensor pad(const at::Tensor& boxes, double top, double left);

/// Options of compute_iou().
struct ComputeIouOptions {
  bool use_masking = false;      ///< whether pairs with a box of negative numbers get mask_val
  double mask_val = -1;          ///< see use_masking
  double height = 0, width = 0;  ///< of the image, for formats in shares of it
};
/// Intersection over union of each of boxes1 with each of boxes2, (boxes1, boxes2), with a batch in
/// front if either has one. Throws as convert_format(), and ShapeError for other ranks.
at::Tensor compute_iou(const at::Tensor& boxes1, const at::Tensor& boxes2,
                       const std::string& bounding_box_format,
                       const ComputeIouOptions& options = {});
/// Complete IoU of pairs of boxes (…, 4), which counts how far apart the centres are and how unlike
/// the aspect ratios; not for formats in shares, as in Keras. Throws as convert_format().
at::Tensor compute_ciou(const at::Tensor& boxes1, const at::Tensor& boxes2,
                        const std::string& bounding_box_format);

/// Options of encode_box_to_deltas() and decode_deltas_to_boxes().
struct BoxDeltasOptions {
  std::string encoding_format = "center_yxhw";  ///< or "center_xywh"
  std::vector<double> variance = {};            ///< what the four deltas are divided by; none: 1
  double height = 0, width = 0;                 ///< of the image, for formats in shares of it
};
/// How far boxes lie from anchors (boxes, 4): the distance of the centres in shares of the anchor's
/// size, and the logarithm of how much larger they are. Throws as convert_format().
at::Tensor encode_box_to_deltas(const at::Tensor& anchors, const at::Tensor& boxes,
                                const std::string& anchor_format, const std::string& box_format,
                                const BoxDeltasOptions& options = {});
/// The boxes that encode_box_to_deltas() made these of. Throws as convert_format().
at::Tensor decode_deltas_to_boxes(const at::Tensor& anchors, const at::Tensor& boxes_delta,
                                  const std::string& anchor_format, const std::string& box_format,
                                  const BoxDeltasOptions& options = {});

}  // namespace tessera::bounding_boxes
