#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomPosterization.
struct RandomPosterizationOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Values of images kept to few bits of eight in training, a random number of them for each image
/// (keras.layers.RandomPosterization). The draws depend on the global row: the same on every mesh.
/// Out of training images are left as they are. No gradient passes.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomPosterization({3, 6})
class RandomPosterization : public detail::AugmentationHandle {
 public:
  /// The number of bits lies in `factor`, from the first number up to but without the second, if
  /// they differ; one number f stands for {1, f}. Throws ConfigError for factors out of [1, 8].
  explicit RandomPosterization(const detail::Factor& factor,
                               const RandomPosterizationOptions& options = {});
};

}  // namespace tessera
