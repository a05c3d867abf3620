#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of AutoContrast.
struct AutoContrastOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Stretches each channel of each image to the full value range, in training and outside it
/// (keras.layers.AutoContrast). A channel of equal values is unchanged.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the minima and maxima if height or width is sharded.
class AutoContrast : public AugmentationHandle {
 public:
  /// Throws ConfigError unless value_range holds two numbers.
  explicit AutoContrast(const AutoContrastOptions& options = {});
};

}  // namespace tessera
