#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomPosterization.
struct RandomPosterizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Reduces image values of eight bits to fewer in training, a random number for each image
/// (keras.layers.RandomPosterization). Draws depend on the global row, so results are the same on
/// every mesh. Identity outside training. No gradient passes.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomPosterization({3, 6})
class RandomPosterization : public AugmentationHandle {
 public:
  /// The number of bits is drawn from [lo, hi) for `factor` {lo, hi}, and is lo if they are equal;
  /// one number f stands for {1, f}. Throws ConfigError for factors outside [1, 8].
  explicit RandomPosterization(const Factor& factor,
                               const RandomPosterizationOptions& options = {});
};

}  // namespace tessera
