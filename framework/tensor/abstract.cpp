#include <tessera/framework/tensor/abstract.hpp>

#include <utility>

namespace tessera {
namespace {

thread_local Mesh current_mesh;
thread_local PlanningNotes* current_notes = nullptr;

}  // namespace

PlanningScope::PlanningScope(const Mesh& mesh, PlanningNotes* notes)
    : former_(std::exchange(current_mesh, create_mesh_part(mesh.dims(), {}, {}, nullptr))),
      former_notes_(std::exchange(current_notes, notes)) {}
PlanningScope::~PlanningScope() {
  current_mesh = former_;
  current_notes = former_notes_;
}

bool planning() { return current_mesh.defined(); }
const Mesh& planning_mesh() { return current_mesh; }
PlanningNotes* planning_notes() { return current_notes; }

Layout planning_layout(const Layout& layout) {
  if (!planning() || layout.mesh() == current_mesh) return layout;
  if (layout.mesh().dims() != current_mesh.dims())
    return Layout::replicated(current_mesh, layout.rank());
  return Layout::from_axes(current_mesh, layout.axes(), layout.pending_dims(),
                           layout.pending_kind());
}

}  // namespace tessera
