#pragma once

#include <vector>

#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::test {

using namespace detail;

/// Returns a mesh whose devices are placed on these GPUs.
inline Mesh gpu_mesh(const MeshDims& dims, const std::vector<int>& gpus) {
  std::vector<Device> devices;
  for (int gpu : gpus) devices.push_back({Device::Type::cuda, gpu});
  return create_mesh(dims, devices);
}

/// Returns a mesh over the machine's GPUs. If it has more devices than there are GPUs, neighbours
/// share one.
inline Mesh gpu_mesh(const MeshDims& dims) {
  int64_t size = 1;
  for (const auto& dim : dims) size *= dim.second;
  const int64_t each = (size + gpu_count() - 1) / gpu_count();
  std::vector<int> gpus;
  for (int64_t i = 0; i < size; ++i) gpus.push_back(static_cast<int>(i / each));
  return gpu_mesh(dims, gpus);
}

}  // namespace tessera::test
