#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandAugment.
struct RandAugmentOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  int64_t num_ops = 2;                         ///< number of augmentations, applied in turn
  Factor factor = 0.5;                         ///< their strength, in [0, 1]
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Applies num_ops augmentations in training (keras.layers.RandAugment), drawn for the batch from
/// RandomShear, RandomTranslation, RandomRotation, RandomBrightness, RandomColorDegeneration,
/// RandomContrast, RandomSharpness, RandomPosterization, Solarization, AutoContrast and
/// Equalization; their strengths are drawn for each image. All of them are computed, as in Keras,
/// since the choice is known on the device only. Draws depend on the global row, so results are the
/// same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, 3) -> the same; data_format orders the axes.
/// Communication: the histograms if the batch is sharded; a sharded height or width is
/// all-gathered.
///
///     RandAugment({.num_ops = 3, .factor = 0.3})
class RandAugment : public AugmentationHandle {
 public:
  /// Throws ConfigError for a factor outside [0, 1] and an unknown interpolation.
  explicit RandAugment(const RandAugmentOptions& options = {});
};

}  // namespace tessera
