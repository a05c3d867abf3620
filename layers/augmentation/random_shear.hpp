#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomShear.
struct RandomShearOptions {
  std::string interpolation = "bilinear";     ///< or "nearest"
  std::string fill_mode = "reflect";          ///< or "constant", "nearest", "wrap"
  double fill_value = 0;                      ///< value beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Shears each image at random in training: x by a fraction of y, and y by a fraction of x
/// (keras.layers.RandomShear). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: a sharded height or width is all-gathered; none for batch or channels.
///
///     RandomShear(0.2, {0, 0.1})
class RandomShear : public AugmentationHandle {
 public:
  /// The fractions are drawn from the factors, and both change sign for half of the images; one
  /// number f stands for {-f, f}. Throws ConfigError for factors outside [-1, 1] and for unknown
  /// modes.
  explicit RandomShear(const Factor& x_factor = 0.0, const Factor& y_factor = 0.0,
                       const RandomShearOptions& options = {});
};

}  // namespace tessera
