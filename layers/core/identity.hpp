#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The input itself (keras.layers.Identity).
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none.
class Identity : public LayerHandle {
 public:
  explicit Identity(const LayerOptions& options = {});
};

}  // namespace tessera
