// Operations that create views of GPU tensors without touching memory, and kernels without a boxed
// version on the CPU.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "tests/support/fake_gpu/device.hpp"
#include "tests/support/fake_gpu/kernel.hpp"
#include "tests/support/fake_gpu/memory.hpp"

namespace tessera::test::fake_gpu {

namespace {

constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

c10::Device device_or_current(std::optional<c10::Device> device) {
  if (device && device->has_index()) {
    check_index(device->index());
    return *device;
  }
  return {c10::kPrivateUse1, current_device()};
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<c10::Device> device,
                 std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(size, &gpu_allocator(), keys, c10::dtype_or_default(dtype),
                                   format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<c10::Device> device, std::optional<bool> pinned) {
  TORCH_CHECK(!pinned.value_or(false), "Only dense CPU tensors can be pinned");
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_strided_generic(size, stride, &gpu_allocator(), keys,
                                           c10::dtype_or_default(dtype));
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* const tensor = self.unsafeGetTensorImpl();
  if (self.sizes() == size && !format) return self;
  tensor->set_sizes_contiguous(size);
  if (format) tensor->empty_tensor_restride(*format);
  const size_t bytes = at::detail::computeStorageNbytes(size, self.strides(), self.itemsize(),
                                                        size_t(self.storage_offset()));
  const c10::Storage& storage = self.storage();
  if (bytes <= storage.nbytes()) return self;
  const c10::DeviceGuard guard(self.device());
  c10::DataPtr data = gpu_allocator().allocate(bytes);
  if (storage.nbytes() > 0) {
    gpu_allocator().copy_data(data.get(), storage.data(), storage.nbytes());
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
  return self;
}

at::Tensor& set_empty(at::Tensor& self) {
  const c10::Storage storage(c10::Storage::use_byte_size_t(), 0,
                             c10::DataPtr(nullptr, self.device()), &gpu_allocator(), true);
  return at::native::set_storage_cpu_(self, storage, 0, {0}, {});
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return at::native::set_storage_cpu_(self, std::move(source), 0, {count}, {});
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  record_use(self.storage().data(), stream);
}

at::Tensor convolution(const at::Tensor& x, const at::Tensor& kernel,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const auto body = [stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(),
                     transposed, output_padding = output_padding.vec(), groups](Values& in) {
    in = {at::convolution(in[0].toTensor(), in[1].toTensor(), in[2].toOptional<at::Tensor>(),
                          stride, padding, dilation, transposed, output_padding, groups)};
  };
  return run_kernel(x.device(), "convolution", {x, kernel, bias}, body)[0].toTensor();
}

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three convolution_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& kernel,
                           at::IntArrayRef stride, at::IntArrayRef padding,
                           at::IntArrayRef dilation, bool transposed,
                           at::IntArrayRef output_padding, int64_t groups,
                           std::array<bool, 3> output_mask) {
  const auto body = [stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(),
                     transposed, output_padding = output_padding.vec(), groups,
                     output_mask](Values& in) {
    const auto [dx, dk, db] = at::convolution_backward(
        in[0].toTensor(), in[1].toTensor(), in[2].toTensor(), at::OptionalIntArrayRef(), stride,
        padding, dilation, transposed, output_padding, groups, output_mask);
    in = {dx, dk, db};
  };
  const Values made = run_kernel(x.device(), "convolution_backward", {dy, x, kernel}, body);
  return {made[0].toTensor(), made[1].toTensor(), made[2].toTensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("unfold", &at::native::unfold);
  library.impl("resize_", &resize);
  library.impl("set_", &set_empty);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("record_stream", &record_stream);
  library.impl("convolution_overrideable", &convolution);
  library.impl("convolution_backward_overrideable", &convolution_backward);
}

}  // namespace
}  // namespace tessera::test::fake_gpu
