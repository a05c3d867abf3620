#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of AutoContrast.
struct AutoContrastOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each channel of each image stretched to the whole range of values, in training and out of it
/// (keras.layers.AutoContrast); one that has a single value stays.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: of a sharded height or width the extremes.
class AutoContrast : public detail::AugmentationHandle {
 public:
  /// Throws ConfigError unless value_range holds two numbers.
  explicit AutoContrast(const AutoContrastOptions& options = {});
};

}  // namespace tessera
