#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of Solarization.
struct SolarizationOptions {
  std::vector<double> value_range = {0, 255};  ///< minimum and maximum of the image values
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string data_format = "channels_last";   ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";        ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Adds a random value to images in training and inverts values from a random threshold on
/// (keras.layers.Solarization). Draws depend on the global row, so results are the same on every
/// mesh. Identity outside training.
///
/// Shape: (batch, height, width, channels) -> the same; data_format orders the axes.
/// Communication: none.
///
///     Solarization(0, 0.5)
class Solarization : public AugmentationHandle {
 public:
  /// Addition and threshold are drawn from [lo, 255 · hi) for their factor {lo, hi}, for values in
  /// [0, 255]; one number f stands for {0, f}. Throws ConfigError for factors outside [0, 1].
  explicit Solarization(const Factor& addition_factor = 0.0, const Factor& threshold_factor = 0.0,
                        const SolarizationOptions& options = {});
};

}  // namespace tessera
