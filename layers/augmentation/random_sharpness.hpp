#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomSharpness.
struct RandomSharpnessOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Blurs or sharpens images at random in training (keras.layers.RandomSharpness). Draws depend on
/// the global row, so results are the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the halos if height or width is sharded.
///
///     RandomSharpness({0.2, 0.8})
class RandomSharpness : public AugmentationHandle {
 public:
  /// Returns 2 f · image + (1 - 2 f) · blurred image, f drawn from `factor`: 1/2 changes nothing,
  /// less blurs, more sharpens. One number f stands for {0, f}. Throws ConfigError for factors
  /// outside [0, 1].
  explicit RandomSharpness(const Factor& factor, const RandomSharpnessOptions& options = {});
};

}  // namespace tessera
