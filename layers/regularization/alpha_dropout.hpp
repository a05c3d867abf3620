#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of AlphaDropout.
struct AlphaDropoutOptions {
  /// Shape of the random choices, broadcast to x: {-1, 1, -1} makes one choice per column of each
  /// matrix. -1 is x's extent (Keras' None). Empty: x's shape.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Dropout for selu: in training, sets each element to -1.7581, selu's limit at -∞, with
/// probability `rate`, then applies an affine transform that preserves mean 0 and variance 1
/// (keras.layers.AlphaDropout; Klambauer, 2017). The choice depends on global indices only: it is
/// the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an input that
/// the noise shape does not broadcast to.
/// Communication: none.
///
///     AlphaDropout(0.1)
class AlphaDropout : public LayerHandle {
 public:
  /// `rate`: the fraction of elements to drop. Throws ConfigError unless 0 <= rate < 1 and the
  /// noise shape holds -1 and extents from 1 on.
  explicit AlphaDropout(double rate, const AlphaDropoutOptions& options = {});
};

}  // namespace tessera
