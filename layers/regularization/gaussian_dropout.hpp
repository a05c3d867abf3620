#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of GaussianDropout.
struct GaussianDropoutOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Multiplicative noise: in training, multiplies x by normal draws of mean 1 and standard deviation
/// sqrt(rate / (1 - rate)) (keras.layers.GaussianDropout). Draws depend on global indices only:
/// they are the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
///
///     GaussianDropout(0.2)
class GaussianDropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1.
  explicit GaussianDropout(double rate, const GaussianDropoutOptions& options = {});
};

}  // namespace tessera
