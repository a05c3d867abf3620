#include <tessera/framework/tensor/planning.hpp>

#include <utility>

namespace tessera {
namespace {

thread_local Mesh current;
thread_local PlanningNotes* current_notes = nullptr;

}  // namespace

PlanningScope::PlanningScope(const Mesh& mesh, PlanningNotes* notes)
    : former_(std::exchange(current, create_mesh_part(mesh.dims(), {}, {}, nullptr))),
      former_notes_(std::exchange(current_notes, notes)) {}
PlanningScope::~PlanningScope() {
  current = former_;
  current_notes = former_notes_;
}

bool planning() { return current.defined(); }
const Mesh& planning_mesh() { return current; }
PlanningNotes* planning_notes() { return current_notes; }

Layout planning_layout(const Layout& layout) {
  if (!planning() || layout.mesh() == current) return layout;
  if (layout.mesh().dims() != current.dims()) return Layout::replicated(current, layout.rank());
  return Layout::from_axes(current, layout.axes(), layout.pending_dims(), layout.pending_kind());
}

}  // namespace tessera
