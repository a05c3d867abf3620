#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of LeakyReLU.
struct LeakyReLUOptions {
  double negative_slope = 0.3;  ///< factor of negative x, from 0 on
  std::string name = "";        ///< first part of the weights' paths
  std::string dtype = "";       ///< policy; the default one if empty
  bool trainable = true;        ///< whether training changes the weights
};

/// y = x for x > 0, else negative_slope · x (keras.layers.LeakyReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none.
class LeakyReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a negative slope below 0.
  explicit LeakyReLU(const LeakyReLUOptions& options = {});
};

}  // namespace tessera
