#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of ELU.
struct ELUOptions {
  double alpha = 1.0;      ///< y tends to -alpha for x far below 0
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// y = x for x > 0, else alpha (exp(x) - 1) (keras.layers.ELU).
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none.
class ELU : public LayerHandle {
 public:
  explicit ELU(const ELUOptions& options = {});
};

}  // namespace tessera
