#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomCrop.
struct RandomCropOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// A part of the images, of that height and width and in training at a random place, the same for a
/// whole batch (keras.layers.RandomCrop). Out of training, and where an image is not larger than
/// the part in both axes, a part in the middle is brought to the size, in the proportions of the
/// part as far as possible.
///
/// Shape: (batch, h, w, channels) -> (batch, height, width, channels), as data_format orders the
/// axes. Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomCrop(224, 224)
class RandomCrop : public detail::AugmentationHandle {
 public:
  /// Throws ConfigError for a height or width below 1.
  explicit RandomCrop(int64_t height, int64_t width, const RandomCropOptions& options = {});
};

}  // namespace tessera
