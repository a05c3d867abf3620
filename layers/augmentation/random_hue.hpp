#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomHue.
struct RandomHueOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Rotates the hue of RGB images at random in training, by one angle for each image
/// (keras.layers.RandomHue). Draws depend on the global row, so results are the same on every mesh.
/// Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomHue(0.2, {.value_range = {0, 1}})
class RandomHue : public AugmentationHandle {
 public:
  /// The angle is f / 2 of a full circle in a random direction, f drawn from `factor`; one number f
  /// stands for {0, f}. Throws ConfigError for factors outside [0, 1].
  explicit RandomHue(const Factor& factor, const RandomHueOptions& options = {});
};

}  // namespace tessera
