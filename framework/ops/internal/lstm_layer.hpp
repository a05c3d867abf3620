#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Whether lstm_layer() is faster than recurrence() here: in predictions of many rows, on CPUs
/// whose libtorch has oneDNN, in a dtype that is_fast_in_onednn().
bool can_run_lstm_layer(const DTensor& x);

/// The states of an LSTM after its steps.
struct LstmStates {
  DTensor h;  ///< after each step, in the order in which steps are read: (steps, rows, units)
  DTensor c;  ///< after the last one: (rows, units)
};

/// An LSTM with tanh and sigmoid in one call of oneDNN, without a gradient. x (rows, steps,
/// features), kernel (features, 4 · units), recurrent kernel (units, 4 · units), bias (4 · units)
/// or undefined, h and c (rows, units); the gates are Keras': input, forget, candidate, output.
/// `reverse`: whether steps are read from the last one on. Communication: none for sharded rows;
/// whatever else is sharded is gathered.
LstmStates lstm_layer(const DTensor& x, const DTensor& kernel, const DTensor& recurrent_kernel,
                      const DTensor& bias, const DTensor& h, const DTensor& c, bool reverse);

}  // namespace tessera::detail
