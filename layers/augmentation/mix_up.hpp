#pragma once

#include <optional>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of MixUp and CutMix.
struct MixUpOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Mixes images in training: w · x + (1 - w) · x', where x' is the batch in a random order and w a
/// Beta(alpha, alpha) sample for each image (keras.layers.MixUp). A second input, labels (batch,
/// classes), is mixed with the same weights; outputs() returns both. Draws depend on the global
/// row, so results are the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the images that come from other shards if the batch is sharded.
///
///     std::vector<at::Tensor> mixed = MixUp()({images, labels}, 7);
class MixUp : public AugmentationHandle {
 public:
  /// Throws ConfigError unless alpha is above 0.
  explicit MixUp(double alpha = 0.2, const MixUpOptions& options = {});
};

/// Replaces a random rectangle of each image in training by that of another image of the batch
/// (keras.layers.CutMix). The fraction kept is a Beta(a, a) sample for each image (on average 1/2),
/// with a drawn for the batch. A second input, labels (batch, classes), is mixed by the rectangle's
/// area; outputs() returns both. Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: the images that come from other shards if the batch is sharded.
class CutMix : public AugmentationHandle {
 public:
  /// a is drawn from `factor`; one number f stands for {0, f}. Throws ConfigError for a factor
  /// outside [0, 1].
  explicit CutMix(const Factor& factor = 1.0, const MixUpOptions& options = {});
};

}  // namespace tessera
