#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tessera::detail {

enum class RecurrentKind : uint8_t { simple_rnn, lstm, gru };

/// Returns the number of gates in products with the kernels: 1, 4 (input, forget, candidate,
/// output), 3 (update, reset, candidate); and how many numbers for each unit gradients read again.
int64_t gates_of(RecurrentKind kind);
int64_t saved_gates_of(RecurrentKind kind);

/// The inputs of a recurrence over a block's rows on a CPU, all float32 or all float64. Steps are
/// read in the order of time, or, if `reverse`, against it; results are in the order in which they
/// are read. The activations are tanh and sigmoid; a GRU resets after the product.
struct Recurrence {
  RecurrentKind kind = RecurrentKind::lstm;
  bool reverse = false;
  bool keeps_gates = true;  ///< whether the gates are results, for gradients
  at::Tensor x;             ///< (rows, steps, gates · units): inputs times their kernel
  at::Tensor kernel;        ///< (units, gates · units)
  at::Tensor bias;  ///< (gates · units), added to products with the kernel; may be undefined
  at::Tensor h, c;  ///< (rows, units): states before the first step; c for an LSTM
  at::Tensor mask;  ///< (rows, steps), bool: a masked step keeps the states; may be undefined
};

/// The states after each step, (steps, rows, units), and the gates, (steps, rows, saved gates ·
/// units). c for an LSTM, gates not for a SimpleRNN, nor without `keeps_gates`.
struct RecurrentStates {
  at::Tensor h, c, gates;
};
RecurrentStates run_recurrence(const Recurrence& in);

/// Returns a block as a Recurrence has it: dense, on a CPU, and at least in float32. Blocks on GPUs
/// are copied; layers compute step by step there.
at::Tensor recurrence_block(const at::Tensor& block);

/// Gradients of Recurrence's tensors; those of undefined ones are undefined.
struct RecurrentGradients {
  at::Tensor x, kernel, bias, h, c;
};
/// `results` holds the gradients of all states, and perhaps of the gates.
RecurrentGradients recurrence_gradients(const Recurrence& in, const RecurrentStates& states,
                                        const RecurrentStates& results);

}  // namespace tessera::detail
