#pragma once

#include <cstdint>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of SpectralNormalization.
struct SpectralNormalizationOptions {
  int64_t power_iterations = 1;  ///< steps of the power iteration in each training step
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// Divides the kernel of a layer by its spectral norm before each training step, which bounds how
/// much the layer magnifies a change of its input (keras.layers.SpectralNormalization).
///
/// A call with training begins with power iterations on the kernel W, as a matrix with one column
/// per output (its last axis): v = u Wᵀ / |u Wᵀ|, u = v W / |v W|. Then the kernel becomes
/// W / (v W uᵀ); a kernel of zeros stays. Gradients are those of the new kernel.
/// Shape and mask: those of the layer.
/// Weights: the layer's, at "path/layer/weight"; vector_u (1, outputs), which training updates
/// without gradients.
/// Communication: the layer's; in training, a sharded kernel costs all-reduces of the two vectors
/// in each iteration.
///
///     SpectralNormalization(Conv2D(64, 3))
class SpectralNormalization : public LayerHandle {
 public:
  /// Throws ConfigError for power_iterations below 1. Building throws ConfigError for a layer
  /// without a weight "kernel" or "embeddings".
  explicit SpectralNormalization(const LayerHandle& layer,
                                 const SpectralNormalizationOptions& options = {});
};

}  // namespace tessera
