#pragma once

#include <tessera/framework/ops/internal/recurrent_kernels.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The inputs of recurrence(): see Recurrence, whose shapes these are.
struct RecurrenceInputs {
  RecurrentKind kind = RecurrentKind::lstm;
  bool reverse = false;
  DTensor x, kernel, bias, h, c, mask;
};
/// The states after each step, in the order in which steps are read: (steps, rows, units).
struct RecurrenceResult {
  DTensor h, c;
};

/// Whether recurrence() is as good as a loop: on CPUs, and while no more than one tape records, as
/// it has no second derivative.
bool can_run_recurrence(const Mesh& mesh);

/// All steps of a SimpleRNN, LSTM or GRU with tanh and sigmoid in one operation. Once
/// differentiable. Half precision is computed in float32 and rounded once. Communication: none for
/// a sharded batch; whatever else is sharded is gathered.
RecurrenceResult recurrence(const RecurrenceInputs& in);

}  // namespace tessera::detail
