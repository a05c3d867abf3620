#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Base of layers off LayerOf whose call() consists of operations, add_loss() and assignments only.
class ReplayedLayer : public Layer {
 public:
  using Layer::Layer;
  bool can_be_replayed() const override { return true; }
};

}  // namespace tessera::detail
