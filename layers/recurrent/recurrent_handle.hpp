#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// A handle to a SimpleRNN, LSTM or GRU.
class RecurrentHandle : public LayerHandle {
 public:
  using LayerHandle::LayerHandle;
  /// Resets the states of a stateful layer (keras.layers.RNN.reset_state).
  void reset_state() const;
};

}  // namespace tessera
