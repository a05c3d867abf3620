#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/array_option.hpp>
#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomErasing.
struct RandomErasingOptions {
  detail::Factor scale = detail::Factor(0.02, 0.33);  ///< the share of cells that is erased
  /// One number, or one for each of three channels; none: normal numbers times the largest value.
  ArrayOption fill_value = {};
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// A random rectangle of images replaced in training (keras.layers.RandomErasing). The draws depend
/// on the global row: the same on every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     RandomErasing(0.5, {.scale = {0.02, 0.2}})
class RandomErasing : public detail::AugmentationHandle {
 public:
  /// An image is changed with a probability that is drawn from `factor`, one number f standing for
  /// {0, f}; of its height and of its width the square roots of two numbers of `scale` are erased.
  /// Throws ConfigError for a factor or scale out of [0, 1], and for a fill_value of two numbers.
  explicit RandomErasing(const detail::Factor& factor = 1.0,
                         const RandomErasingOptions& options = {});
};

}  // namespace tessera
