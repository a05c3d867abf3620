#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomCrop.
struct RandomCropOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Crops images to (height, width), in training at a random position drawn for the batch
/// (keras.layers.RandomCrop). Outside training, and unless the images are larger than the crop in
/// both axes, resizes a centre crop instead, which has the target's aspect ratio as far as
/// possible.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels); data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomCrop(224, 224)
class RandomCrop : public AugmentationHandle {
 public:
  /// Throws ConfigError for a height or width below 1.
  explicit RandomCrop(int64_t height, int64_t width, const RandomCropOptions& options = {});
};

}  // namespace tessera
