#include <tessera/framework/strategy/mirrored_strategy.hpp>

#include <tessera/framework/strategy/internal/devices.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

Mesh mirrored_mesh(const MirroredOptions& options) {
  const auto devices = parse_devices("MirroredStrategy, devices", options.devices);
  const MeshDims dims = {{"batch", std::ssize(devices)}};
  if (!options.cross_device_ops) return create_mesh(dims, devices);
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < std::ssize(devices); ++id) ids.push_back(id);
  return create_mesh_part(dims, ids, devices,
                          cross_device_communicator(*options.cross_device_ops, devices));
}

}  // namespace

MirroredStrategy::MirroredStrategy(const MirroredOptions& options)
    : Strategy("MirroredStrategy", mirrored_mesh(options)) {}

}  // namespace tessera::strategy
