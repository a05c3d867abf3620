#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomColorDegeneration.
struct RandomColorDegenerationOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Images in RGB brought nearer to their gray by a random share in training
/// (keras.layers.RandomColorDegeneration). The draws depend on the global row: the same on every
/// mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomColorDegeneration({0, 0.5})
class RandomColorDegeneration : public detail::AugmentationHandle {
 public:
  /// The share lies in `factor`; one number f stands for {-f, f}. Throws ConfigError for factors
  /// out of
  /// [-1, 1].
  explicit RandomColorDegeneration(const detail::Factor& factor,
                                   const RandomColorDegenerationOptions& options = {});
};

}  // namespace tessera
