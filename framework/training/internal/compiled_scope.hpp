#pragma once

#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/training/internal/training_state.hpp>

namespace tessera::detail {

/// While alive, this thread computes as a model was compiled: with world_size_invariant, in a
/// WorldSizeInvariantScope, whose blocks the model's variables then have, too.
class CompiledScope {
 public:
  CompiledScope(const Layer& layer, const TrainingState& state);

 private:
  WorldSizeInvariantScope invariant_;
};

}  // namespace tessera::detail
