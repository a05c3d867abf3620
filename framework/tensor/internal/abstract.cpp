#include <tessera/framework/tensor/internal/abstract.hpp>

#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera::detail {

AbstractScope::AbstractScope(const Mesh& mesh, AbstractNotes* notes)
    : mesh_(thread_state().abstract_mesh, create_mesh_part(mesh.dims(), {}, {}, nullptr)),
      notes_(thread_state().abstract_notes, notes) {}

bool is_abstract() { return abstract_mesh().defined(); }
const Mesh& abstract_mesh() { return thread_state().abstract_mesh; }
AbstractNotes* abstract_notes() { return thread_state().abstract_notes; }

Layout abstract_layout(const Layout& layout) {
  const Mesh& mesh = abstract_mesh();
  if (!mesh.defined() || layout.mesh() == mesh) return layout;
  if (layout.mesh().dims() != mesh.dims()) return Layout::replicated(mesh, layout.rank());
  return Layout::from_axes(mesh, layout.axes(), layout.pending_dims(), layout.pending_kind());
}

}  // namespace tessera::detail
