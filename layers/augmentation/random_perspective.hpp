#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomPerspective.
struct RandomPerspectiveOptions {
  std::string interpolation = "bilinear";      ///< or "nearest"
  double fill_value = 0;                       ///< value beyond the edges
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Applies a random perspective transform to images in training (keras.layers.RandomPerspective),
/// which moves all corners but the upper left one. Draws depend on the global row, so results are
/// the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomPerspective(0.5, 0.3)
class RandomPerspective : public AugmentationHandle {
 public:
  /// An image is changed with a probability drawn from `factor`; one number f stands for {0, f}.
  /// Corners move by up to scale / 2 of height and width. Throws ConfigError for a factor or scale
  /// outside [0, 1] and for an unknown interpolation.
  explicit RandomPerspective(const Factor& factor = 1.0, double scale = 1,
                             const RandomPerspectiveOptions& options = {});
};

}  // namespace tessera
