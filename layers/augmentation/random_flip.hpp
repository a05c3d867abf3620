#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomFlip.
struct RandomFlipOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Flips each image with probability 1/2 in training (keras.layers.RandomFlip): left to right, top
/// to bottom or, as in Keras, both at once. Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomFlip("horizontal")
class RandomFlip : public AugmentationHandle {
 public:
  /// `mode`: "horizontal", "vertical" or "horizontal_and_vertical". Throws ConfigError for another.
  explicit RandomFlip(const std::string& mode = "horizontal_and_vertical",
                      const RandomFlipOptions& options = {});
};

}  // namespace tessera
