#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/TensorOptions.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Whether the mesh's devices are GPUs: each GPU has memory of its own, which only those devices
/// share that lie on it.
bool on_gpus(const Mesh& mesh);
/// Those that the mesh's devices in this process lie on, of a mesh of GPUs.
int64_t gpus_of(const Mesh& mesh);
/// "batch=4 on 2 GPUs", and of CPUs "batch=4".
std::string describe_place(const Mesh& mesh);

/// Where the tensor of a block lies: on the first of the devices that it stands for.
c10::Device block_device(const Mesh& mesh, const BlockInfo& block);
/// That, and the dtype of the sharding.
at::TensorOptions block_options(const Sharding& sharding, const BlockInfo& block);

/// The shape of the block that these intervals cut out.
Shape extents(const std::vector<Interval>& intervals);

/// The tensor on a device; itself where it lies there. From the host to a GPU and between GPUs
/// nothing waits for the copy, and the source may be changed at once.
at::Tensor moved_to(const at::Tensor& tensor, c10::Device device);

/// A tensor of the host on a GPU, copied beside what the GPU computes; what this thread computes
/// from now on waits for the copy there. `kept`: nobody changes the tensor any more, so that it is
/// copied from where it lies if that is pinned memory.
at::Tensor uploaded(const at::Tensor& tensor, c10::Device gpu, bool kept);

/// A small value, the same on every process, that operations read on the host: what changes from
/// step to step must not be waited for on a GPU. Replicated over the mesh.
DTensor host_input(at::Tensor value, const Mesh& mesh);

}  // namespace tessera::detail
