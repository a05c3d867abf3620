#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomTranslation.
struct RandomTranslationOptions {
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

/// Each image moved down and to the right in training, by random shares of its height and width
/// (keras.layers.RandomTranslation). The draws depend on the global row: the same on every mesh.
/// Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; a sharded height or width is
/// gathered.
///
///     RandomTranslation(0.1, {-0.2, 0.3}, {.fill_mode = "constant"})
class RandomTranslation : public detail::AugmentationHandle {
 public:
  /// The shares lie in the factors; one number f stands for {-f, f}. Throws ConfigError for factors
  /// out of [-1, 1] and for unknown modes.
  explicit RandomTranslation(const detail::Factor& height_factor,
                             const detail::Factor& width_factor,
                             const RandomTranslationOptions& options = {});
};

}  // namespace tessera
