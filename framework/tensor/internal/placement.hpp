#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/TensorOptions.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Whether the mesh's devices are GPUs: each GPU has its own memory, shared only by the mesh
/// devices placed on it.
bool on_gpus(const Mesh& mesh);
/// Returns the number of GPUs that this process's devices of a GPU mesh are placed on.
int64_t gpus_of(const Mesh& mesh);
/// Describes the mesh: "batch=4 on 2 GPUs", or "batch=4" for CPUs.
std::string describe_mesh(const Mesh& mesh);

/// Returns the device that stores a block's tensor: the first of the devices that it stands for.
c10::Device block_device(const Mesh& mesh, const BlockInfo& block);
/// Returns the block's device and the sharding's dtype.
at::TensorOptions block_options(const Sharding& sharding, const BlockInfo& block);

/// Returns the shape of a block with these intervals.
Shape extents(const std::vector<Interval>& intervals);

/// Copies the tensor to a device; returns the tensor itself if it is stored there. Copies to GPUs
/// are not waited for, and the source may be overwritten at once.
at::Tensor moved_to(const at::Tensor& tensor, c10::Device device);

/// Copies a host tensor to a GPU on the upload stream, concurrently with computation; work that
/// this thread queues from now on waits for it. `immutable`: nobody overwrites the tensor any more,
/// so a pinned one is copied asynchronously without staging.
at::Tensor upload(const at::Tensor& tensor, c10::Device gpu, bool immutable);

/// Makes a small value, equal on every process, that operations read on the host: a number that
/// changes from step to step must not require waiting for a GPU. Replicated over the mesh.
DTensor host_input(at::Tensor value, const Mesh& mesh);

}  // namespace tessera::detail
