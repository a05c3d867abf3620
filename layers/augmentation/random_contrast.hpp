#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomContrast.
struct RandomContrastOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// (x - mean) · c + mean in training, cut to the range of values, with the mean of each image and
/// channel and a random c for each image (keras.layers.RandomContrast). The draws depend on the
/// global row: the same on every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none for a sharded batch or sharded channels; of a sharded height or width the
/// means.
///
///     RandomContrast(0.2)
class RandomContrast : public detail::AugmentationHandle {
 public:
  /// c lies in [1 - lo, 1 + hi] of `factor` {lo, hi}, of which one number f stands for {0, f}.
  /// Throws ConfigError for factors out of [0, 1].
  explicit RandomContrast(const detail::Factor& factor, const RandomContrastOptions& options = {});
};

}  // namespace tessera
