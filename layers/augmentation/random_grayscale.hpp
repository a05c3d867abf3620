#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomGrayscale.
struct RandomGrayscaleOptions {
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Converts RGB images to grayscale at random in training, with three equal channels
/// (keras.layers.RandomGrayscale). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomGrayscale(0.2)
class RandomGrayscale : public AugmentationHandle {
 public:
  /// Converts an image with probability `factor`. Throws ConfigError for a factor outside [0, 1].
  explicit RandomGrayscale(double factor = 0.5, const RandomGrayscaleOptions& options = {});
};

}  // namespace tessera
