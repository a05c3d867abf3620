#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomColorJitter.
struct RandomColorJitterOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  /// RandomBrightness' factor; absent: brightness stays, and so for the others.
  std::optional<detail::Factor> brightness_factor = std::nullopt;
  std::optional<detail::Factor> contrast_factor = std::nullopt;    ///< RandomContrast's
  std::optional<detail::Factor> saturation_factor = std::nullopt;  ///< RandomSaturation's
  std::optional<detail::Factor> hue_factor = std::nullopt;         ///< RandomHue's
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Brightness, contrast, saturation and hue of images in RGB changed at random in training, one
/// after the other (keras.layers.RandomColorJitter). The draws depend on the global row: the same
/// on every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; of a sharded height or width the
/// means.
///
///     RandomColorJitter({.brightness_factor = 0.2, .hue_factor = 0.1})
class RandomColorJitter : public detail::AugmentationHandle {
 public:
  /// Throws ConfigError where one of the four layers does.
  explicit RandomColorJitter(const RandomColorJitterOptions& options = {});
};

}  // namespace tessera
