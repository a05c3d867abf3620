#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomColorDegeneration.
struct RandomColorDegenerationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Blends RGB images with their grayscale version by a random weight in training
/// (keras.layers.RandomColorDegeneration). Draws depend on the global row, so results are the same
/// on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomColorDegeneration({0, 0.5})
class RandomColorDegeneration : public AugmentationHandle {
 public:
  /// The weight of the grayscale version is drawn from `factor`; one number f stands for {-f, f}.
  /// Throws ConfigError for factors outside [-1, 1].
  explicit RandomColorDegeneration(const Factor& factor,
                                   const RandomColorDegenerationOptions& options = {});
};

}  // namespace tessera
