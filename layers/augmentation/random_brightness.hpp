#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomBrightness.
struct RandomBrightnessOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each image made brighter or darker in training by a random share of the range of values, to
/// which it is cut (keras.layers.RandomBrightness). The draws depend on the global row: the same on
/// every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomBrightness(0.2, {.value_range = {0, 1}})
class RandomBrightness : public detail::AugmentationHandle {
 public:
  /// The share lies in `factor`; one number f stands for {-f, f}. Throws ConfigError for factors
  /// out of
  /// [-1, 1].
  explicit RandomBrightness(const detail::Factor& factor,
                            const RandomBrightnessOptions& options = {});
};

}  // namespace tessera
