#pragma once

#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of CenterCrop.
struct CenterCropOptions {
  std::string data_format = "";          ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";  ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                 ///< first component of the weights' paths
  std::string dtype = "";                ///< dtype policy (default: the global policy)
  bool trainable = true;                 ///< whether training changes the weights
};

/// Crops the centre of images, in the compute dtype (keras.layers.CenterCrop). If images are too
/// small in height or width, resizes their largest centre crop of the target's aspect ratio.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels); data_format orders the axes.
/// Communication: none unless height or width is sharded; then each new shard fetches the rows and
/// columns that it lacks.
class CenterCrop : public LayerHandle {
 public:
  /// Throws ConfigError for a size below 1.
  CenterCrop(int64_t height, int64_t width, const CenterCropOptions& options = {});
};

}  // namespace tessera
