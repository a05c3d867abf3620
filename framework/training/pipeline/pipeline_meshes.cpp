#include <tessera/framework/training/pipeline/pipeline_meshes.hpp>

#include <memory>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>

namespace tessera::detail {

namespace {

/// Returns the mesh with another dimension before its own, all of whose coordinates are on the same
/// devices.
Mesh with_dim_before(const Mesh& mesh, const std::string& name, int64_t size) {
  MeshDims dims = mesh.dims();
  dims.insert(dims.begin(), {name, size});
  std::vector<int64_t> ids;
  std::vector<Device> devices;
  std::vector<int> owners;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t id : mesh.local_ids()) ids.push_back(i * mesh.size() + id);
    devices.insert(devices.end(), mesh.local_devices().begin(), mesh.local_devices().end());
    for (int64_t id = 0; mesh.communicator() && id < mesh.size(); ++id) {
      owners.push_back(owner_of(mesh, id));
    }
  }
  std::shared_ptr<const Hosting> hosting;
  if (mesh.communicator()) hosting = std::make_shared<const Hosting>(dims, std::move(owners));
  return create_mesh_part(dims, ids, devices, mesh.communicator(), mesh.name(), std::move(hosting));
}

DimMask shifted(DimMask dims, int by) { return by < 0 ? dims >> -by : dims << by; }

}  // namespace

PipelineMeshes::PipelineMeshes(const Mesh& mesh, std::string stage_dim,
                               std::vector<int64_t> device_of, int64_t microbatches)
    : stage_dim_(std::move(stage_dim)), device_of_(std::move(device_of)) {
  if (mesh.find(microbatch_dim) >= 0) {
    throw ConfigError("pipeline", "the mesh leaves the dimension \"microbatch\" to the pipeline",
                      "mesh " + mesh.describe(), "rename the dimension");
  }
  rows_ = with_dim_before(mesh, microbatch_dim, microbatches);
  for (int64_t device : device_of_) {
    MeshDims at;
    if (!stage_dim_.empty()) at.emplace_back(stage_dim_, device);
    weights_.push_back(mesh.view(at));
    all_rows_.push_back(rows_.view(at));
    turns_.emplace_back();
    at.emplace_back(microbatch_dim, 0);
    for (int64_t i = 0; i < microbatches; ++i) {
      at.back().second = i;
      turns_.back().push_back(rows_.view(at));
    }
  }
}

Layout PipelineMeshes::layout_on(const Layout& layout, const Mesh& mesh) const {
  const int by = mesh.rank() - layout.mesh().rank();
  std::vector<std::vector<int>> axes = layout.axes();
  for (std::vector<int>& axis : axes) {
    // Only the one microbatch of a batch may lose its dimension.
    if (by < 0) std::erase(axis, 0);
    for (int& dim : axis) dim += by;
  }
  return Layout::from_axes(mesh, std::move(axes), shifted(layout.partial_dims(), by),
                           layout.partial_kind());
}

DTensor PipelineMeshes::value_on(const DTensor& value, const Mesh& mesh) const {
  if (value.mesh() == mesh) return value;
  const Layout layout = layout_on(value.layout(), mesh);
  const ShardingPtr usual = intern(value.shape(), value.dtype(), layout);
  Groups groups = value.sharding()->groups;
  const int by = mesh.rank() - value.mesh().rank();
  if (by > 0) groups.insert(groups.begin(), usual->groups[0]);
  if (by < 0) groups.erase(groups.begin());
  const ShardingPtr sharding = intern(value.shape(), value.dtype(), layout, groups);
  // Microbatches come first in the order of blocks. Under per_device each has its own block of what
  // all of them share.
  const Blocks& here = value.stored_blocks();
  Blocks blocks;
  for (size_t b = 0; b < sharding->blocks.size(); ++b) blocks.push_back(here[b % here.size()]);
  DTensor same(sharding, std::move(blocks));
  if (value.is_parameter()) same.mark_parameter();
  return same;
}

}  // namespace tessera::detail
