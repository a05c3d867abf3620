#pragma once

#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of Equalization.
struct EqualizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  int64_t bins = 256;                          ///< number of histogram bins
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Equalizes each channel's histogram over the batch in training (keras.layers.Equalization). A
/// channel within one bin is unchanged. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the histograms if batch, height or width is sharded.
class Equalization : public AugmentationHandle {
 public:
  /// Throws ConfigError for fewer than two bins, and unless value_range holds two numbers.
  explicit Equalization(const EqualizationOptions& options = {});
};

}  // namespace tessera
