#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomSaturation.
struct RandomSaturationOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Colors of images in RGB made paler or stronger at random in training, alike in one image
/// (keras.layers.RandomSaturation). The draws depend on the global row: the same on every mesh. Out
/// of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomSaturation({0.4, 0.6})
class RandomSaturation : public detail::AugmentationHandle {
 public:
  /// The saturation is multiplied by f / (1 - f) for an f of `factor`, so that 1/2 changes nothing;
  /// one number f stands for {-f, f}. Throws ConfigError for factors out of [-1, 1].
  explicit RandomSaturation(const detail::Factor& factor,
                            const RandomSaturationOptions& options = {});
};

}  // namespace tessera
