#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/labeled_images.hpp>

/// Bounding boxes in images, on the host (keras.utils.bounding_boxes). Boxes are (boxes, 4) or
/// (batch, boxes, 4); dtypes other than float64 are computed in float32. A format says what the
/// four numbers are, in any case: "xyxy" (left, top, right, bottom), "yxyx", "xywh" (left, top,
/// width, height), "center_xywh" and "center_yxhw" in pixels; "rel_xyxy", "rel_yxyx", "rel_xywh"
/// and "rel_center_xywh" relative to the image's width and height.
///
///     at::Tensor boxes = at::tensor({30.F, 20.F, 60.F, 40.F}).view({1, 4});
///     at::Tensor shares = bounding_boxes::convert_format(boxes, "xyxy", "rel_xywh", 100, 200);
namespace tessera::bounding_boxes {

/// Returns the boxes in another format. Relative formats need the image's `height` and `width`.
/// Throws ConfigError for an unknown format or a missing size, ShapeError unless the last extent is
/// 4.
at::Tensor convert_format(const at::Tensor& boxes, const std::string& source,
                          const std::string& target, double height = 0, double width = 0);

/// Clips boxes in "xyxy" or "rel_xyxy" to the image; a box of which nothing is left gets label -1.
/// Throws as convert_format().
BoundingBoxes clip_to_image_size(const BoundingBoxes& boxes, double height, double width,
                                 const std::string& bounding_box_format = "xyxy");

/// crop() returns boxes in "xyxy" relative to a crop of the image, clipped to it; pad() those of an
/// image that was padded at the top and left.
at::Tensor crop(const at::Tensor& boxes, double top, double left, double height, double width);
at::Tensor pad(const at::Tensor& boxes, double top, double left);

/// Options of compute_iou().
struct ComputeIouOptions {
  bool use_masking = false;      ///< whether pairs with a box of negative numbers get mask_val
  double mask_val = -1;          ///< see use_masking
  double height = 0, width = 0;  ///< the image's size, for relative formats
};
/// Returns the intersection over union of each of boxes1 with each of boxes2, (boxes1, boxes2),
/// with a leading batch axis if either has one. Throws as convert_format(), and ShapeError for
/// other ranks.
at::Tensor compute_iou(const at::Tensor& boxes1, const at::Tensor& boxes2,
                       const std::string& bounding_box_format,
                       const ComputeIouOptions& options = {});
/// Returns the complete IoU of pairs of boxes (…, 4), which also penalizes distant centres and
/// different aspect ratios; not for relative formats, as in Keras. Throws as convert_format().
at::Tensor compute_ciou(const at::Tensor& boxes1, const at::Tensor& boxes2,
                        const std::string& bounding_box_format);

/// Options of encode_box_to_deltas() and decode_deltas_to_boxes().
struct BoxDeltasOptions {
  std::string encoding_format = "center_yxhw";  ///< or "center_xywh"
  std::vector<double> variance = {};            ///< divides the four deltas (default: ones)
  double height = 0, width = 0;                 ///< the image's size, for relative formats
};
/// Encodes boxes relative to anchors (boxes, 4): the offset of the centres divided by the anchor's
/// size, and the logarithm of the ratio of the sizes. Throws as convert_format().
at::Tensor encode_box_to_deltas(const at::Tensor& anchors, const at::Tensor& boxes,
                                const std::string& anchor_format, const std::string& box_format,
                                const BoxDeltasOptions& options = {});
/// Inverts encode_box_to_deltas(). Throws as convert_format().
at::Tensor decode_deltas_to_boxes(const at::Tensor& anchors, const at::Tensor& boxes_delta,
                                  const std::string& anchor_format, const std::string& box_format,
                                  const BoxDeltasOptions& options = {});

}  // namespace tessera::bounding_boxes
