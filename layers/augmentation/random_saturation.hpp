#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomSaturation.
struct RandomSaturationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Scales the saturation of RGB images at random in training, by one factor for each image
/// (keras.layers.RandomSaturation). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomSaturation({0.4, 0.6})
class RandomSaturation : public AugmentationHandle {
 public:
  /// The saturation is multiplied by f / (1 - f), f drawn from `factor`, so that 1/2 changes
  /// nothing; one number f stands for {-f, f}. Throws ConfigError for factors outside [-1, 1].
  explicit RandomSaturation(const Factor& factor, const RandomSaturationOptions& options = {});
};

}  // namespace tessera
