#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Dropout.
struct DropoutOptions {
  /// Shape of the random choices, broadcast to x: {-1, 1, -1} makes one choice per column of each
  /// matrix. -1 is x's extent (Keras' None). Empty: x's shape.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Dropout: in training, zeroes each element with probability `rate` and scales the others by
/// 1 / (1 - rate) (keras.layers.Dropout). The choice depends on global indices only: it is the same
/// on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// the noise shape does not broadcast to.
/// Communication: none.
///
///     Dropout(0.2)
class Dropout : public LayerHandle {
 public:
  /// `rate`: the fraction of elements to drop. Throws ConfigError unless 0 <= rate < 1 and the
  /// noise shape holds -1 and extents from 1 on.
  explicit Dropout(double rate, const DropoutOptions& options = {});
};

}  // namespace tessera
