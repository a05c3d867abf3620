#pragma once

#include <functional>
#include <string>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/augmentation/labeled_images.hpp>

/// Support for image layers that also transform the labels, masks and boxes of host images.
namespace tessera::detail {

/// Packs a host tensor onto one virtual CPU device, where it is computed.
DTensor packed_on_host(const at::Tensor& tensor);

/// A layer that transforms bounding boxes and segmentation masks along with images.
class LabeledLayer {
 public:
  virtual ~LabeledLayer() = default;
  /// Transforms a batch of images with their labels, masks and boxes. Throws ConfigError for boxes
  /// without a format.
  virtual LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) = 0;
};

/// Calls call_labeled() of a LabeledLayer; another layer transforms the images only, and throws
/// ConfigError if it changes their size while there are boxes or masks.
LabeledImages call_labeled(Layer& layer, const LabeledImages& batch, const CallContext& context);

/// Throws ShapeError unless labels, masks and boxes, if defined, fit the batch of images.
void check_labeled(const std::string& where, const LabeledImages& batch);

/// Applies f, which expects channels last, to images or masks, and transposes them if
/// `channels_first`.
at::Tensor channels_last(const DTensor& x, bool channels_first,
                         const std::function<DTensor(const DTensor&)>& f);

/// Height and width of images.
struct ImageExtent {
  double height = 0, width = 0;
};
ImageExtent image_extent(const at::Tensor& images, bool channels_first);

/// Returns the format of a layer's boxes. Throws ConfigError if it is empty.
const std::string& required_box_format(const std::string& where, const std::string& format);

/// Transforms boxes in `format` by f, which maps "xyxy" corners in images of size `from` to images
/// of size `to`, and clips them to that size.
BoundingBoxes transformed_boxes(const BoundingBoxes& boxes, const std::string& format,
                                ImageExtent from, ImageExtent to,
                                const std::function<at::Tensor(const at::Tensor&)>& f);

/// Scales "xyxy" boxes (…, 4) by `of_y` vertically and `of_x` horizontally.
at::Tensor scaled_corners(const at::Tensor& corners, double of_y, double of_x);

/// Applies f, which moves pixels, in a floating dtype that represents the masks' values exactly.
DTensor transformed_masks(const DTensor& masks, const std::function<DTensor(const DTensor&)>& f);

}  // namespace tessera::detail
