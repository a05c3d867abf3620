#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Mixin for layers that no configuration describes, such as those of a C++ function.
class UnsavedLayer {
 public:
  virtual ~UnsavedLayer() = default;
};

/// Throws ConfigError if `layer` or a layer inside it is an UnsavedLayer, or attention with
/// quantized projections or adapters: a model that has one can be neither saved nor cloned.
void check_saved(const Layer& layer);

}  // namespace tessera::detail
