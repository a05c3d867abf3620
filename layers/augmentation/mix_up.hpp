#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of MixUp and CutMix.
struct MixUpOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// w · x + (1 - w) · x' in training, x' the images of the batch in a random order and w a number of
/// Beta(alpha, alpha) for each (keras.layers.MixUp). A second input is labels (batch, classes),
/// which are mixed as the images are; outputs() gives both. The draws depend on the global row: the
/// same on every mesh. Out of training all is left as it is.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: of a sharded batch, the images that a shard lacks.
///
///     std::vector<at::Tensor> mixed = MixUp()({images, labels}, 7);
class MixUp : public detail::AugmentationHandle {
 public:
  /// Throws ConfigError unless alpha is above 0.
  explicit MixUp(double alpha = 0.2, const MixUpOptions& options = {});
};

/// A random rectangle of each image replaced in training by what another one of the batch has there
/// (keras.layers.CutMix), on average half of it: a number of Beta(a, a) for each image, with a
/// drawn for the batch. A second input is labels (batch, classes), mixed by the rectangle's share;
/// outputs() gives both. The draws depend on the global row: the same on every mesh. Out of
/// training all is left as it is.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: of a sharded batch, the images that a shard lacks.
class CutMix : public detail::AugmentationHandle {
 public:
  /// a lies in `factor`, one number f standing for {0, f}. Throws ConfigError for a factor out of
  /// [0, 1].
  explicit CutMix(const detail::Factor& factor = 1.0, const MixUpOptions& options = {});
};

}  // namespace tessera
