#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomSharpness.
struct RandomSharpnessOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Images made softer or sharper at random in training (keras.layers.RandomSharpness). The draws
/// depend on the global row: the same on every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: of a sharded height or width the cells at the borders.
///
///     RandomSharpness({0.2, 0.8})
class RandomSharpness : public detail::AugmentationHandle {
 public:
  /// 2 f of an f in `factor` is the share of the image itself beside the one smoothed by its
  /// neighbours, so that 1/2 changes nothing and less softens; one number f stands for {0, f}.
  /// Throws ConfigError for factors out of [0, 1].
  explicit RandomSharpness(const detail::Factor& factor,
                           const RandomSharpnessOptions& options = {});
};

}  // namespace tessera
