#pragma once

#include <tessera/framework/nn/array_option.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Rescaling.
struct RescalingOptions {
  ArrayOption offset = 0.0;  ///< added; a number, or an array that broadcasts to the last axes
  std::string name = "";     ///< first component of the weights' paths
  std::string dtype = "";    ///< dtype policy (default: the global policy)
  bool trainable = true;     ///< whether training changes the weights
};

/// Rescales inputs to x · scale + offset in the compute dtype, also integers
/// (keras.layers.Rescaling).
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that the scale
/// or the offset does not broadcast to.
/// Communication: none.
///
///     Rescaling(1.0 / 127.5, {.offset = -1})   // bytes to [-1, 1]
class Rescaling : public LayerHandle {
 public:
  /// `scale`: a number, or an array that broadcasts to the last axes. Throws ConfigError for no
  /// scale or offset.
  explicit Rescaling(const ArrayOption& scale, const RescalingOptions& options = {});
};

}  // namespace tessera
