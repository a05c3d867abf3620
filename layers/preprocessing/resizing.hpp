#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Resizing.
struct ResizingOptions {
  /// "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
  std::string interpolation = "bilinear";
  bool crop_to_aspect_ratio = false;  ///< cuts off what the size has no place for, both sides alike
  bool pad_to_aspect_ratio = false;   ///< adds to the short sides what the size has too much
  std::string fill_mode = "constant";    ///< the only one: fill_value
  double fill_value = 0;                 ///< what pad_to_aspect_ratio adds
  bool antialias = false;                ///< smooths images that become smaller; not with "nearest"
  std::string data_format = "";          ///< "channels_last", as if empty, or "channels_first"
  std::string bounding_box_format = "";  ///< of boxes with images, such as "xyxy"
  std::string name = "";                 ///< first part of the weights' paths
  std::string dtype = "";                ///< policy; the default one if empty
  bool trainable = true;                 ///< whether training changes the weights
};

/// Images in another size (keras.layers.Resizing), an axis at a time. Whole numbers are rounded,
/// and stay of their dtype.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels), as data_format orders the
/// axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// the cells that each new shard reads, and with "nearest" its result is summed.
class Resizing : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1, an unknown interpolation or both aspect ratios.
  Resizing(int64_t height, int64_t width, const ResizingOptions& options = {});
};

}  // namespace tessera
