#include <tessera/framework/training/internal/compiled_scope.hpp>

#include <vector>

namespace tessera::detail {

CompiledScope::CompiledScope(const Layer& layer, const TrainingState& state)
    : invariant_(state.layouts.world_size_invariant()) {
  if (!state.layouts.world_size_invariant() || !state.placed) return;
  std::vector<Variable> all = layer.weights();
  if (state.optimizer()) {
    const std::vector<Variable> slots = state.optimizer()->variables();
    all.insert(all.end(), slots.begin(), slots.end());
  }
  // Values that were read from a file or assigned outside of the scope have other blocks.
  for (Variable& variable : all) variable.place(variable.placement());
}

}  // namespace tessera::detail
