#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// An activation function as a layer (keras.layers.Activation).
///
/// Shape: (batch, …) -> (batch, …); "glu" halves the last axis. The mask passes through.
/// Communication: none, except for functions along a sharded axis, such as "softmax".
///
///     Activation("gelu")
class Activation : public LayerHandle {
 public:
  /// `activation` by Keras' name, or a function of tensors. Throws ConfigError for an unknown name.
  explicit Activation(const ActivationHandle& activation, const LayerOptions& options = {});
};

}  // namespace tessera
