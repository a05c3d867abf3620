#include <tessera/framework/tensor/internal/abstract.hpp>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/mesh/internal/view.hpp>

namespace tessera::detail {

AbstractScope::AbstractScope(const Mesh& mesh, PlannedTensors* planned)
    : mesh_(thread_state().abstract_mesh, create_mesh_part(mesh.dims(), {}, {}, nullptr)),
      planned_(thread_state().planned_tensors, planned) {
  if (planned) planned->between_processes = !mesh.is_local();
}

bool is_abstract() { return abstract_mesh().defined(); }
const Mesh& abstract_mesh() { return thread_state().abstract_mesh; }
PlannedTensors* planned_tensors() { return thread_state().planned_tensors; }

Layout abstract_layout(const Layout& layout) {
  const Mesh& mesh = abstract_mesh();
  if (!mesh.defined() || layout.mesh().root() == mesh) return layout;
  if (layout.mesh().dims() != mesh.dims()) return Layout::replicated(mesh, layout.rank());
  return Layout::from_axes(mesh.view(fixed_coordinates(layout.mesh())), layout.axes(),
                           layout.partial_dims(), layout.partial_kind());
}

}  // namespace tessera::detail
