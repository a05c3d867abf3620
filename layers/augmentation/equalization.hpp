#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of Equalization.
struct EqualizationOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  int64_t bins = 256;                          ///< of the histogram
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each channel's values spread in training so that all occur alike often in the batch
/// (keras.layers.Equalization); a channel within one bin stays. Out of training images are left as
/// they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: of a sharded batch, height or width the histograms.
class Equalization : public detail::AugmentationHandle {
 public:
  /// Throws ConfigError for less than two bins, and unless value_range holds two numbers.
  explicit Equalization(const EqualizationOptions& options = {});
};

}  // namespace tessera
