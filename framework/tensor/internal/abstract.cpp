#include <tessera/framework/tensor/internal/abstract.hpp>

#include <string>
#include <utility>

#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/mesh/internal/view.hpp>

namespace tessera::detail {

namespace {

/// Returns the position in `mesh` of each dimension of another mesh; empty unless it has them all,
/// in their sizes.
std::vector<int> positions_in(const Mesh& mesh, const MeshDims& dims) {
  std::vector<int> positions;
  for (const auto& [name, size] : dims) {
    positions.push_back(mesh.find(name));
    if (positions.back() < 0 || mesh.dim_size(positions.back()) != size) return {};
  }
  return positions;
}

}  // namespace

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
  if (layout.mesh().dims() == mesh.dims()) {
    return Layout::from_axes(mesh.view(fixed_coordinates(layout.mesh())), layout.axes(),
                             layout.partial_dims(), layout.partial_kind());
  }
  const std::vector<int> positions = positions_in(mesh, layout.mesh().dims());
  if (positions.empty()) return Layout::replicated(mesh, layout.rank());
  std::vector<std::vector<int>> axes = layout.axes();
  for (std::vector<int>& axis : axes) {
    for (int& dim : axis) dim = positions[static_cast<size_t>(dim)];
  }
  DimMask partial = 0;
  for (size_t d = 0; d < positions.size(); ++d) {
    if (layout.partial_dims() >> d & 1) partial |= DimMask{1} << positions[d];
  }
  return Layout::from_axes(mesh, std::move(axes), partial, layout.partial_kind());
}

Layout abstract_layout(const Layout& layout, const Layout& like) {
  const Layout planned = abstract_layout(layout);
  if (!(planned.mesh() == like.mesh()) || planned.rank() != like.rank()) return planned;
  std::vector<std::vector<int>> axes = planned.axes();
  for (size_t a = 0; a < axes.size(); ++a) {
    std::vector<int> added;
    for (int dim : like.axes()[a]) {
      const std::string& name = like.mesh().dims()[static_cast<size_t>(dim)].first;
      if (layout.mesh().find(name) < 0) added.push_back(dim);
    }
    axes[a].insert(axes[a].begin(), added.begin(), added.end());
  }
  return Layout::from_axes(planned.mesh(), std::move(axes), planned.partial_dims(),
                           planned.partial_kind());
}

}  // namespace tessera::detail
