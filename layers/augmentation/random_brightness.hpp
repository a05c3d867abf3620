#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomBrightness.
struct RandomBrightnessOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Adds a random fraction of the value range to each image in training and clips to that range
/// (keras.layers.RandomBrightness). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomBrightness(0.2, {.value_range = {0, 1}})
class RandomBrightness : public AugmentationHandle {
 public:
  /// The fraction is drawn from `factor`; one number f stands for {-f, f}. Throws ConfigError for
  /// factors outside [-1, 1].
  explicit RandomBrightness(const Factor& factor, const RandomBrightnessOptions& options = {});
};

}  // namespace tessera
