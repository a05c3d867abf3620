#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Masking.
struct MaskingOptions {
  double mask_value = 0;   ///< what all features of a step that is left out are
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// Sets the steps whose features all are `mask_value` to 0 and leaves them out of the mask that
/// goes on with the output (keras.layers.Masking).
///
/// Shape: (batch, …, features) -> (batch, …, features), with a mask (batch, …). Throws ShapeError
/// for an input without features.
/// Communication: none if the features are whole; if they are cut, one all-reduce of the mask.
///
///     Masking({.mask_value = -1})
class Masking : public LayerHandle {
 public:
  explicit Masking(const MaskingOptions& options = {});
};

}  // namespace tessera
