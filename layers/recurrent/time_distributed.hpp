#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Applies a layer or model to each step of a sequence, with the same weights
/// (keras.layers.TimeDistributed).
///
/// Shape: (batch, time, …) -> (batch, time, …), where the last axes are those of the layer's output
/// for (batch, …). The sequence's mask passes through; a layer that supports masks gets each step's
/// part of it.
/// Penalties: the layer's, at each step; Keras omits those on the layer's output.
/// Weights: the layer's, at "path/layer/weight".
/// Communication: the layer's, at each step; sharded steps are gathered.
///
///     TimeDistributed(Dense(8))
class TimeDistributed : public LayerHandle {
 public:
  explicit TimeDistributed(const LayerHandle& layer, const LayerOptions& options = {});
};

}  // namespace tessera
