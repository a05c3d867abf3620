#include <tessera/framework/mesh/internal/weight_placement.hpp>

#include <utility>

namespace tessera::detail {

Mesh with_weight_placement(const Mesh& mesh, std::shared_ptr<const WeightPlacement> placement) {
  Mesh::State state = *mesh.state_;
  state.weight_placement = std::move(placement);
  if (state.root) {
    Mesh::State root = *state.root;
    root.weight_placement = state.weight_placement;
    state.root = std::make_shared<const Mesh::State>(std::move(root));
  }
  return Mesh(std::make_shared<const Mesh::State>(std::move(state)));
}

const WeightPlacement* weight_placement_of(const Mesh& mesh) {
  return mesh.state_->weight_placement.get();
}

Placement stored_placement(const Placement& requested) {
  const WeightPlacement* placement = weight_placement_of(requested.layout.mesh());
  return placement ? placement->stored_placement(requested) : requested;
}

}  // namespace tessera::detail
