#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of LeakyReLU.
struct LeakyReLUOptions {
  double negative_slope = 0.3;  ///< factor of negative x, at least 0
  std::string name = "";        ///< first component of the weights' paths
  std::string dtype = "";       ///< dtype policy (default: the global policy)
  bool trainable = true;        ///< whether training changes the weights
};

/// y = x for x > 0, else negative_slope · x (keras.layers.LeakyReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
class LeakyReLU : public LayerHandle {
 public:
  /// Throws ConfigError for negative_slope < 0.
  explicit LeakyReLU(const LeakyReLUOptions& options = {});
};

}  // namespace tessera
