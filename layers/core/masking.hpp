#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Masking.
struct MaskingOptions {
  double mask_value = 0;   ///< value that all features of a masked step have
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// Masks the steps whose features all equal `mask_value`: zeroes them and excludes them from the
/// output's mask (keras.layers.Masking).
///
/// Shape: (batch, …, features) -> (batch, …, features), with a mask (batch, …). Throws ShapeError
/// for an input without features.
/// Communication: none if the features are replicated; if they are sharded, one all-reduce of the
/// mask.
///
///     Masking({.mask_value = -1})
class Masking : public LayerHandle {
 public:
  explicit Masking(const MaskingOptions& options = {});
};

}  // namespace tessera
