#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomColorJitter.
struct RandomColorJitterOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  /// Factor of RandomBrightness (default: brightness is unchanged); the next three likewise.
  std::optional<Factor> brightness_factor = std::nullopt;
  std::optional<Factor> contrast_factor = std::nullopt;    ///< factor of RandomContrast
  std::optional<Factor> saturation_factor = std::nullopt;  ///< factor of RandomSaturation
  std::optional<Factor> hue_factor = std::nullopt;         ///< factor of RandomHue
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Changes brightness, contrast, saturation and hue of RGB images at random in training, in this
/// order (keras.layers.RandomColorJitter). Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the means if height or width is sharded; none for batch or channels.
///
///     RandomColorJitter({.brightness_factor = 0.2, .hue_factor = 0.1})
class RandomColorJitter : public AugmentationHandle {
 public:
  /// Throws ConfigError where one of the four layers does.
  explicit RandomColorJitter(const RandomColorJitterOptions& options = {});
};

}  // namespace tessera
