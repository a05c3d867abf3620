#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of GaussianNoise.
struct GaussianNoiseOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Additive noise: in training, adds normal draws of mean 0 and standard deviation `stddev` to x
/// (keras.layers.GaussianNoise). Draws depend on global indices only: they are the same on every
/// mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
///
///     GaussianNoise(0.1)
class GaussianNoise : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= stddev <= 1.
  explicit GaussianNoise(double stddev, const GaussianNoiseOptions& options = {});
};

}  // namespace tessera
