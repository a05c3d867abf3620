#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomRotation.
struct RandomRotationOptions {
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  double fill_value = 0;                       ///< beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each image turned around its centre by a random angle in training (keras.layers.RandomRotation).
/// The draws depend on the global row: the same on every mesh. Out of training images are left as
/// they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomRotation(0.1)              // by up to 36 degrees either way
class RandomRotation : public detail::AugmentationHandle {
 public:
  /// The angle lies in `factor` of a full circle, counterclockwise if positive; one number f stands
  /// for
  /// {-f, f}. Throws ConfigError for factors out of [-1, 1] and for unknown modes.
  explicit RandomRotation(const detail::Factor& factor, const RandomRotationOptions& options = {});
};

}  // namespace tessera
