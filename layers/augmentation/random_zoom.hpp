#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomZoom.
struct RandomZoomOptions {
  /// For the width; absent: it is zoomed as the height is.
  std::optional<detail::Factor> width_factor = std::nullopt;
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  double fill_value = 0;                       ///< beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each image zoomed around its centre in training, by 1 + a random number
/// (keras.layers.RandomZoom). The draws depend on the global row: the same on every mesh. Out of
/// training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomZoom({-0.3, -0.1}, {.width_factor = 0.2})
class RandomZoom : public detail::AugmentationHandle {
 public:
  /// The number lies in `height_factor`, where positive ones show more and negative ones less; one
  /// number f stands for {-f, f}. Throws ConfigError for factors out of (-1, 1] and for unknown
  /// modes.
  explicit RandomZoom(const detail::Factor& height_factor, const RandomZoomOptions& options = {});
};

}  // namespace tessera
