#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of CenterCrop.
struct CenterCropOptions {
  std::string data_format = "";          ///< "channels_last", as if empty, or "channels_first"
  std::string bounding_box_format = "";  ///< of boxes with images, such as "xyxy"
  std::string name = "";                 ///< first part of the weights' paths
  std::string dtype = "";                ///< policy; the default one if empty
  bool trainable = true;                 ///< whether training changes the weights
};

/// The middle of images, in the compute dtype (keras.layers.CenterCrop). Of images that are too
/// small in height or width it is the largest part of the size's aspect ratio, resized.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels), as data_format orders the
/// axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width fetches
/// what each new shard lacks.
class CenterCrop : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1.
  CenterCrop(int64_t height, int64_t width, const CenterCropOptions& options = {});
};

}  // namespace tessera
