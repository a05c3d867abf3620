#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// A layer or model on each step of a sequence, with the same weights
/// (keras.layers.TimeDistributed).
///
/// Shape: (batch, time, …) -> (batch, time, …), the last axes those of the layer's output for
/// (batch, …). A mask of the sequence stays, and its part of a step goes to a layer that supports
/// masks.
/// Penalties: the layer's, of each step; Keras leaves out those on what the layer gives.
/// Weights: the layer's, at "path/layer/weight".
/// Communication: the layer's, at each step; sharded steps are gathered.
///
///     TimeDistributed(Dense(8))
class TimeDistributed : public LayerHandle {
 public:
  explicit TimeDistributed(const LayerHandle& layer, const LayerOptions& options = {});
};

}  // namespace tessera
