#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of Solarization.
struct SolarizationOptions {
  std::vector<double> value_range = {0, 255};  ///< the least and the largest value of images
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string data_format = "channels_last";   ///< or "channels_first"
  std::string bounding_box_format = "";        ///< of boxes with images, such as "xyxy"
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// Images made brighter by a random addition in training, and values from a random threshold on
/// taken from the largest (keras.layers.Solarization). The draws depend on the global row: the same
/// on every mesh. Out of training images are left as they are.
///
/// Shape: (batch, height, width, channels) -> the same, as data_format orders the axes.
/// Communication: none.
///
///     Solarization(0, 0.5)
class Solarization : public detail::AugmentationHandle {
 public:
  /// Addition and threshold are numbers of their factors times 255, for values of 0 to 255; one
  /// number f stands for {0, f}. Throws ConfigError for factors out of [0, 1].
  explicit Solarization(const detail::Factor& addition_factor = 0.0,
                        const detail::Factor& threshold_factor = 0.0,
                        const SolarizationOptions& options = {});
};

}  // namespace tessera
