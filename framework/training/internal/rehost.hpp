#pragma once

#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {

/// Moves a compiled model, its optimizer, metrics and captured steps to `mesh`: the same mesh, of
/// which this process now holds other devices. Communicates nothing, so it loses values: with
/// `keep`, only those that were sharded. Returns whether no value was lost.
bool rehost(Trainer& trainer, TrainingState& state, const Mesh& mesh, bool keep);

}  // namespace tessera::detail
