#include <tessera/framework/tensor/internal/placement.hpp>

#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

namespace tessera::detail {

bool on_gpus(const Mesh& mesh) {
  const std::vector<Device>& devices = mesh.local_devices();
  return !devices.empty() && devices.front().type == Device::Type::cuda;
}

int64_t gpus_of(const Mesh& mesh) {
  std::set<int> gpus;
  for (Device device : mesh.local_devices()) gpus.insert(device.index);
  return static_cast<int64_t>(gpus.size());
}

std::string describe_mesh(const Mesh& mesh) {
  if (!on_gpus(mesh)) return mesh.describe();
  const int64_t gpus = gpus_of(mesh);
  return str(mesh.describe(), " on ", gpus, gpus == 1 ? " GPU" : " GPUs",
             mesh.is_local() ? "" : " of each process");
}

Shape extents(const std::vector<Interval>& intervals) {
  Shape shape;
  for (Interval interval : intervals) shape.push_back(interval.size());
  return shape;
}

c10::Device block_device(const Mesh& mesh, const BlockInfo& block) {
  if (!on_gpus(mesh)) return c10::Device(c10::kCPU);
  const auto first = static_cast<size_t>(block.devices.front());
  return ExecutionContext::of(mesh.local_devices()[first]).torch_device();
}

at::TensorOptions block_options(const Sharding& sharding, const BlockInfo& block) {
  return at::TensorOptions().dtype(sharding.dtype).device(block_device(sharding.mesh(), block));
}

at::Tensor moved_to(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  if (!tensor.is_cpu() || tensor.numel() == 0) return tensor.to(device);
  return upload(tensor, device, /*immutable=*/false);
}

at::Tensor upload(const at::Tensor& tensor, c10::Device device, bool immutable) {
  // Only copies from pinned memory are asynchronous; the allocator keeps it until they are done.
  const at::Tensor pinned = tensor.contiguous().pin_memory();
  const bool is_copy = !pinned.is_same(tensor);
  const Gpu& to = gpu(device.index());
  const c10::Stream compute = to.compute();
  at::Tensor copy;
  {
    const c10::StreamGuard guard(to.upload);
    copy = pinned.to(device, pinned.scalar_type(), /*non_blocking=*/is_copy || immutable);
  }
  order(to.upload, compute);
  copy.record_stream(compute);
  return copy;
}

DTensor host_input(at::Tensor value, const Mesh& mesh) {
  const Layout layout = Layout::replicated(mesh, value.dim());
  if (!on_gpus(mesh)) return pack(std::move(value), layout);
  const ShardingPtr sharding = intern(value.sizes().vec(), value.scalar_type(), layout);
  return DTensor(sharding, Blocks(sharding->blocks.size(), value));
}

}  // namespace tessera::detail
