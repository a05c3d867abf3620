#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandAugment.
struct RandAugmentOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  int64_t num_ops = 2;                         ///< how many changes are made, one after the other
  detail::Factor factor = 0.5;                 ///< how strong they are, in [0, 1]
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Changes drawn for a batch in training (keras.layers.RandAugment) out of RandomShear,
/// RandomTranslation, RandomRotation, RandomBrightness, RandomColorDegeneration, RandomContrast,
/// RandomSharpness, RandomPosterization, Solarization, AutoContrast and Equalization; each image
/// has numbers of its own for them. All of them are computed, as in Keras, since which are drawn is
/// known on the device alone. The draws depend on the global row: the same on every mesh. Out of
/// training images are left as they are.
///
/// Shape: (batch, height, width, 3) -> the same, as data_format orders the axes.
/// Communication: of a sharded batch, histograms; a sharded height or width is gathered.
///
///     RandAugment({.num_ops = 3, .factor = 0.3})
class RandAugment : public detail::AugmentationHandle {
 public:
  /// Throws ConfigError for a factor out of [0, 1] and an unknown interpolation.
  explicit RandAugment(const RandAugmentOptions& options = {});
};

}  // namespace tessera
