#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// A handle to a layer that loops over time: SimpleRNN, LSTM, GRU, ConvLSTM1D to 3D or RNN.
class RecurrentHandle : public LayerHandle {
 public:
  using LayerHandle::LayerHandle;
  /// Resets the states of a stateful layer (keras.layers.RNN.reset_state).
  void reset_state() const;
};

}  // namespace tessera
