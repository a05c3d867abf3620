#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of GaussianNoise.
struct GaussianNoiseOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// In training, x plus normal numbers of mean 0 and standard deviation `stddev`
/// (keras.layers.GaussianNoise). They depend on the global index: the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none.
///
///     GaussianNoise(0.1)
class GaussianNoise : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= stddev <= 1.
  explicit GaussianNoise(double stddev, const GaussianNoiseOptions& options = {});
};

}  // namespace tessera
