#pragma once

#include <cstdint>
#include <string>

#include <tessera/layers/augmentation/augmentation_handle.hpp>

namespace tessera {

/// The options of MaxNumBoundingBoxes.
struct MaxNumBoundingBoxesOptions {
  int64_t fill_value = -1;                    ///< coordinates and class of boxes that are added
  std::string data_format = "channels_last";  ///< "channels_last" (default) or "channels_first"
  std::string bounding_box_format = "";       ///< format of the bounding boxes, such as "xyxy"
  std::string name = "";                      ///< first component of the weights' paths
  std::string dtype = "";                     ///< dtype policy (default: the global policy)
  bool trainable = true;                      ///< whether training changes the weights
};

/// Gives all images the same number of bounding boxes (keras.layers.MaxNumBoundingBoxes): drops
/// those from max_number on, and adds padding. Images, labels and masks are unchanged, so in a
/// model it is the identity.
///
/// Shape: (batch, height, width, channels) -> the same; boxes (batch, boxes, 4) -> (batch,
/// max_number, 4).
/// Communication: none.
///
///     MaxNumBoundingBoxes(10)
class MaxNumBoundingBoxes : public AugmentationHandle {
 public:
  /// Throws ConfigError for a max_number below 0.
  explicit MaxNumBoundingBoxes(int64_t max_number, const MaxNumBoundingBoxesOptions& options = {});
};

}  // namespace tessera
