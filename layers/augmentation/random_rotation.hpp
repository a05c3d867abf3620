#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomRotation.
struct RandomRotationOptions {
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  double fill_value = 0;                      ///< value beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";       ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                      ///< first component of the weights' paths
  std::string dtype = "";                     ///< dtype policy (default: the global policy)
  bool trainable = true;                      ///< whether training changes the weights
};

/// Rotates each image about its centre by a random angle in training (keras.layers.RandomRotation).
/// Draws depend on the global row, so results are the same on every mesh. Identity outside
/// training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomRotation(0.1)              // by up to 36 degrees either way
class RandomRotation : public AugmentationHandle {
 public:
  /// The angle, as a fraction of a full circle, is drawn from `factor` and counterclockwise if
  /// positive; one number f stands for {-f, f}. Throws ConfigError for factors outside [-1, 1] and
  /// for unknown modes.
  explicit RandomRotation(const Factor& factor, const RandomRotationOptions& options = {});
};

}  // namespace tessera
