#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ELU.
struct ELUOptions {
  double alpha = 1.0;      ///< y tends to -alpha as x tends to -∞
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// y = x for x > 0, else alpha (exp(x) - 1) (keras.layers.ELU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
class ELU : public LayerHandle {
 public:
  explicit ELU(const ELUOptions& options = {});
};

}  // namespace tessera
