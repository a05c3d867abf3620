#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Returns its input (keras.layers.Identity).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
class Identity : public LayerHandle {
 public:
  explicit Identity(const LayerOptions& options = {});
};

}  // namespace tessera
