#pragma once

#include <c10/core/Device.h>
#include <c10/core/TensorOptions.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Whether the mesh's devices are GPUs: each has memory of its own, so that no two share a block.
bool on_gpus(const Mesh& mesh);

/// Where the tensor of a block lies: on the first of the devices that it stands for.
c10::Device block_device(const Mesh& mesh, const BlockInfo& block);
/// That, and the dtype of the sharding.
at::TensorOptions block_options(const Sharding& sharding, const BlockInfo& block);

/// The shape of the block that these intervals cut out.
Shape extents(const std::vector<Interval>& intervals);

/// The tensor on a device; itself where it lies there. From the host to a GPU and between GPUs
/// nothing waits for the copy, and the source may be changed at once.
at::Tensor moved_to(const at::Tensor& tensor, c10::Device device);

/// A small value, the same on every process, that operations read on the host: what changes from
/// step to step must not be waited for on a GPU. Replicated over the mesh.
DTensor host_input(at::Tensor value, const Mesh& mesh);

}  // namespace tessera::detail
