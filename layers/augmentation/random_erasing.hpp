#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/array_option.hpp>
#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of RandomErasing.
struct RandomErasingOptions {
  Factor scale = Factor(0.02, 0.33);  ///< fraction of the pixels that is erased
  /// One number or one for each of three channels (default: normal noise times the maximum value).
  ArrayOption fill_value = {};
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Erases a random rectangle of images in training (keras.layers.RandomErasing). Draws depend on
/// the global row, so results are the same on every mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     RandomErasing(0.5, {.scale = {0.02, 0.2}})
class RandomErasing : public AugmentationHandle {
 public:
  /// An image is changed with a probability drawn from `factor`; one number f stands for {0, f}.
  /// The rectangle is sqrt(s) of the height and sqrt(t) of the width, s and t drawn from `scale`.
  /// Throws ConfigError for a factor or scale outside [0, 1], and for a fill_value of two numbers.
  explicit RandomErasing(const Factor& factor = 1.0, const RandomErasingOptions& options = {});
};

}  // namespace tessera
