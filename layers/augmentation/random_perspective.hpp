#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomPerspective.
struct RandomPerspectiveOptions {
  std::string interpolation = "bilinear";      ///< or "nearest"
  double fill_value = 0;                       ///< beyond the edges if fill_mode is "constant"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Images seen at random from aside in training (keras.layers.RandomPerspective): the corners but
/// the upper left one move. The draws depend on the global row: the same on every mesh. Out of
/// training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomPerspective(0.5, 0.3)
class RandomPerspective : public detail::AugmentationHandle {
 public:
  /// An image is changed with a probability that is drawn from `factor`, one number f standing for
  /// {0, f}; corners move by up to half of `scale` of height and width. Throws ConfigError for a
  /// factor or scale out of [0, 1] and for an unknown interpolation.
  explicit RandomPerspective(const detail::Factor& factor = 1.0, double scale = 1,
                             const RandomPerspectiveOptions& options = {});
};

}  // namespace tessera
