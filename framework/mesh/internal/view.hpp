#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// Returns the coordinates of a view, such as {{"stage", 1}}: Mesh::view() of them on its root is
/// the inverse. Empty for a mesh that is no view.
MeshDims fixed_coordinates(const Mesh& mesh);

/// Returns the global ids of all devices of a mesh or view, ascending.
std::vector<int64_t> device_ids(const Mesh& mesh);

/// Whether a mesh is a view of which this process holds nothing. It takes no part in the view's
/// collectives; values there have no blocks.
inline bool is_elsewhere(const Mesh& mesh) { return mesh.is_view() && mesh.local_ids().empty(); }

}  // namespace tessera::detail
