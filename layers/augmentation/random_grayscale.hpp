#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomGrayscale.
struct RandomGrayscaleOptions {
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Images in RGB made gray at random in training, their three channels alike
/// (keras.layers.RandomGrayscale). The draws depend on the global row: the same on every mesh. Out
/// of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomGrayscale(0.2)
class RandomGrayscale : public detail::AugmentationHandle {
 public:
  /// An image is made gray with probability `factor`. Throws ConfigError for one out of [0, 1].
  explicit RandomGrayscale(double factor = 0.5, const RandomGrayscaleOptions& options = {});
};

}  // namespace tessera
