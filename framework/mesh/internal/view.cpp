#include <tessera/framework/mesh/internal/view.hpp>

namespace tessera::detail {

MeshDims fixed_coordinates(const Mesh& mesh) {
  MeshDims fixed;
  for (size_t d = 0; d < mesh.dims().size(); ++d) {
    if (mesh.fixed_dims() >> d & 1) fixed.emplace_back(mesh.dims()[d].first, mesh.box()[d].lo);
  }
  return fixed;
}

std::vector<int64_t> device_ids(const Mesh& mesh) {
  std::vector<int64_t> ids;
  std::vector<int64_t> at;
  int64_t devices = 1;
  for (Interval side : mesh.box()) {
    at.push_back(side.lo);
    devices *= side.size();
  }
  for (int64_t i = 0; i < devices; ++i) {
    ids.push_back(mesh.id(at));
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < mesh.box()[d].hi) break;
      at[d] = mesh.box()[d].lo;
    }
  }
  return ids;
}

}  // namespace tessera::detail
