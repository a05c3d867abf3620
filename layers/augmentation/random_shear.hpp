#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomShear.
struct RandomShearOptions {
  std::string interpolation = "bilinear";      ///< or "nearest"
  std::string fill_mode = "reflect";           ///< or "constant", "nearest", "wrap"
  double fill_value = 0;                       ///< beyond the edges if fill_mode is "constant"
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Each image slanted at random in training, x by a share of y and y by a share of x
/// (keras.layers.RandomShear). The draws depend on the global row: the same on every mesh. Out of
/// training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomShear(0.2, {0, 0.1})
class RandomShear : public detail::AugmentationHandle {
 public:
  /// The shares lie in the factors, which both change their sign for half of the images; one number
  /// f stands for {-f, f}. Throws ConfigError for factors out of [-1, 1] and for unknown modes.
  explicit RandomShear(const detail::Factor& x_factor = 0.0, const detail::Factor& y_factor = 0.0,
                       const RandomShearOptions& options = {});
};

}  // namespace tessera
