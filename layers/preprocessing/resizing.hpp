#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Resizing.
struct ResizingOptions {
  /// "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
  std::string interpolation = "bilinear";
  bool crop_to_aspect_ratio = false;     ///< centre-crops to the target's aspect ratio first
  bool pad_to_aspect_ratio = false;      ///< pads to the target's aspect ratio first
  std::string fill_mode = "constant";    ///< must be "constant": fill_value
  double fill_value = 0;                 ///< value that pad_to_aspect_ratio adds
  bool antialias = false;                ///< smooths images when downsizing; not with "nearest"
  std::string data_format = "";          ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";  ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                 ///< first component of the weights' paths
  std::string dtype = "";                ///< dtype policy (default: the global policy)
  bool trainable = true;                 ///< whether training changes the weights
};

/// Resizes images (keras.layers.Resizing), one axis at a time. The dtype stays; integers are
/// rounded.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels); data_format orders the axes.
/// Communication: none unless height or width is sharded; then each new shard fetches the pixels
/// that it reads, and with "nearest" the result is summed.
class Resizing : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1, an unknown interpolation or both aspect ratios.
  Resizing(int64_t height, int64_t width, const ResizingOptions& options = {});
};

}  // namespace tessera
