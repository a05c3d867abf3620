#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of AlphaDropout.
struct AlphaDropoutOptions {
  /// Shape of the random choices, which broadcast to x: {-1, 1, -1} drops whole columns of every
  /// matrix. -1 is x's extent (Keras' None); x's shape if empty.
  Shape noise_shape = {};
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// In training, elements become -1.7581, what selu tends to, with probability `rate`, and all are
/// then scaled and moved so that mean 0 and variance 1 stay (keras.layers.AlphaDropout; Klambauer,
/// 2017). Which ones depends on the global index: the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask stays. Throws ShapeError for an input that the noise
/// shape does not broadcast to.
/// Communication: none.
///
///     AlphaDropout(0.1)
class AlphaDropout : public LayerHandle {
 public:
  /// `rate`: the share of elements to drop. Throws ConfigError unless 0 <= rate < 1 and the noise
  /// shape holds -1 and extents from 1 on.
  explicit AlphaDropout(double rate, const AlphaDropoutOptions& options = {});
};

}  // namespace tessera
