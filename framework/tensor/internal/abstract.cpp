#include <tessera/framework/tensor/internal/abstract.hpp>

#include <utility>

namespace tessera::detail {
namespace {

thread_local Mesh current_mesh;
thread_local AbstractNotes* current_notes = nullptr;

}  // namespace

AbstractScope::AbstractScope(const Mesh& mesh, AbstractNotes* notes)
    : former_(std::exchange(current_mesh, create_mesh_part(mesh.dims(), {}, {}, nullptr))),
      former_notes_(std::exchange(current_notes, notes)) {}
AbstractScope::~AbstractScope() {
  current_mesh = former_;
  current_notes = former_notes_;
}

bool is_abstract() { return current_mesh.defined(); }
const Mesh& abstract_mesh() { return current_mesh; }
AbstractNotes* abstract_notes() { return current_notes; }

Layout abstract_layout(const Layout& layout) {
  if (!is_abstract() || layout.mesh() == current_mesh) return layout;
  if (layout.mesh().dims() != current_mesh.dims())
    return Layout::replicated(current_mesh, layout.rank());
  return Layout::from_axes(current_mesh, layout.axes(), layout.pending_dims(),
                           layout.pending_kind());
}

}  // namespace tessera::detail
