#pragma once

#include <functional>
#include <string>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/layers/augmentation/labeled_images.hpp>

/// What layers on images share that take along what comes with images of the host.
namespace tessera::detail {

/// A tensor of the host whole on one device, where it is computed.
DTensor packed_here(const at::Tensor& tensor);

/// A layer that boxes and masks of segments follow.
class LabeledLayer {
 public:
  virtual ~LabeledLayer() = default;
  /// A batch, images and what comes with them, as the layer makes it in that context. Throws
  /// ConfigError for boxes without a format.
  virtual LabeledImages call_labeled(const LabeledImages& batch, const CallContext& context) = 0;
};

/// call_labeled(), or, of another layer, its images with the rest as it is. Throws ConfigError if
/// such a layer makes images of another size, whose boxes and masks would not fit.
LabeledImages call_labeled(Layer& layer, const LabeledImages& batch, const CallContext& context);

/// Throws ShapeError unless all that there is belongs to one batch of images.
void check_labeled(const std::string& where, const LabeledImages& batch);

/// What f makes of images or masks with channels last, of such that may have them first.
at::Tensor channels_last(const DTensor& x, bool channels_first,
                         const std::function<DTensor(const DTensor&)>& f);

/// Height and width of images as data_format orders them.
struct ImageExtent {
  double height = 0, width = 0;
};
ImageExtent image_extent(const at::Tensor& images, bool channels_first);

/// The format of a layer's boxes as it is used. Throws ConfigError if none was given.
const std::string& used_box_format(const std::string& where, const std::string& format);

/// Boxes in `format` of images of one size, changed in "xyxy" by f to those of images of another
/// size and clipped to it.
BoundingBoxes moved_boxes(const BoundingBoxes& boxes, const std::string& format, ImageExtent from,
                          ImageExtent to, const std::function<at::Tensor(const at::Tensor&)>& f);

/// Boxes in "xyxy" (…, 4) of an image that becomes so many times as high and wide.
at::Tensor scaled_corners(const at::Tensor& corners, double of_y, double of_x);

/// Does f, which moves cells, in a floating dtype that holds the masks' numbers.
DTensor moved_masks(const DTensor& masks, const std::function<DTensor(const DTensor&)>& f);

}  // namespace tessera::detail
