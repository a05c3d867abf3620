#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomFlip.
struct RandomFlipOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each image mirrored with probability 1/2 in training (keras.layers.RandomFlip): left to right,
/// top to bottom or, as Keras has it, both at once. The draws depend on the global row: the same on
/// every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomFlip("horizontal")
class RandomFlip : public detail::AugmentationHandle {
 public:
  /// `mode`: "horizontal", "vertical" or "horizontal_and_vertical". Throws ConfigError for another.
  explicit RandomFlip(const std::string& mode = "horizontal_and_vertical",
                      const RandomFlipOptions& options = {});
};

}  // namespace tessera
