#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomContrast.
struct RandomContrastOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Scales the contrast of images at random in training: (x - mean) · c + mean, clipped to the value
/// range, with the mean of each image and channel and c drawn for each image
/// (keras.layers.RandomContrast). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the means if height or width is sharded; none for batch or channels.
///
///     RandomContrast(0.2)
class RandomContrast : public AugmentationHandle {
 public:
  /// c is drawn from [1 - lo, 1 + hi] for `factor` {lo, hi}; one number f stands for {0, f}. Throws
  /// ConfigError for factors outside [0, 1].
  explicit RandomContrast(const Factor& factor, const RandomContrastOptions& options = {});
};

}  // namespace tessera
