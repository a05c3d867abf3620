#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of NewLayer.
struct NewLayerOptions {
  double factor = 2;       ///< what the input is multiplied by
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
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
