#pragma once

#include <algorithm>

#include <tessera/framework/comm/nccl/cuda_device.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::test {

using namespace detail;

/// A mesh over the machine's GPUs, each of which stands for several of its devices where it has
/// more than there are GPUs.
inline Mesh gpu_mesh(const MeshDims& dims) {
  int64_t size = 1;
  for (const auto& dim : dims) size *= dim.second;
  std::vector<Device> devices;
  for (int64_t i = 0; i < size; ++i) {
    devices.push_back({Device::Type::cuda, static_cast<int>(i % std::max(1, cuda_device_count()))});
  }
  return create_mesh(dims, devices);
}

}  // namespace tessera::test
