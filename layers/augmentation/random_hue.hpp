#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomHue.
struct RandomHueOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Colors of images in RGB turned around the color circle at random in training, one turn for each
/// image (keras.layers.RandomHue). The draws depend on the global row: the same on every mesh. Out
/// of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomHue(0.2, {.value_range = {0, 1}})
class RandomHue : public detail::AugmentationHandle {
 public:
  /// The turn is half of a number of `factor`, one number f standing for {0, f}, either way. Throws
  /// ConfigError for factors out of [0, 1].
  explicit RandomHue(const detail::Factor& factor, const RandomHueOptions& options = {});
};

}  // namespace tessera
