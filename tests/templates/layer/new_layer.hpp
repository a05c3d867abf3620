#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of NewLayer.
struct NewLayerOptions {
  double factor = 2;       ///< factor that the input is multiplied by
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// y = factor · x + offset.
///
/// Shape: (batch, …, n) -> (batch, …, n). The mask stays.
/// Weights: offset (n), which begins as zeros.
/// Communication: none.
class NewLayer : public LayerHandle {
 public:
  /// Throws ConfigError for a factor of 0.
  explicit NewLayer(const NewLayerOptions& options = {});
};

}  // namespace tessera
