#include "tests/support/fake_gpu/kernel.hpp"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include "tests/support/fake_gpu/counters.hpp"
#include "tests/support/fake_gpu/memory.hpp"
#include "tests/support/fake_gpu/recording.hpp"
#include "tests/support/fake_gpu/streams.hpp"

namespace tessera::test::fake_gpu {

namespace {

/// Applies function(tensor) to each tensor in a value, and replaces a GPU device by the CPU.
template <class Function>
c10::IValue mapped(const c10::IValue& value, const Function& function) {
  const auto each = [&](const at::Tensor& tensor) {
    return tensor.defined() ? function(tensor) : tensor;
  };
  if (value.isTensor()) return each(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(each(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(each(*tensor)) : std::nullopt);
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().is_privateuseone()) return c10::Device(c10::kCPU);
  return value;
}

template <class Function>
Values mapped(const Values& values, const Function& function) {
  Values all;
  for (const c10::IValue& value : values) all.push_back(mapped(value, function));
  return all;
}

at::Tensor zeros_like(const at::Tensor& tensor) {
  if (!is_on_gpu(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kCPU))
      .zero_();
}

/// Allocates GPU tensors with the sizes and strides of those that a kernel made on the host.
Values like_on(c10::Device gpu, const Values& results) {
  return mapped(results, [&](const at::Tensor& result) {
    TORCH_CHECK(!result.has_storage() || !is_inside(result.storage().data()),
                "the fake GPU has no views by kernels; give it this one in structure.cpp");
    return at::empty_strided(result.sizes(), result.strides(), result.options().device(gpu));
  });
}

void copy(const Values& from, const Values& to) {
  std::vector<at::Tensor> sources;
  for (const c10::IValue& value : from) {
    for_each_tensor(value, [&](const at::Tensor& tensor) { sources.push_back(tensor); });
  }
  size_t next = 0;
  for (const c10::IValue& value : to) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (tensor.numel() > 0) tensor.copy_(sources[next]);
      ++next;
    });
  }
}

}  // namespace

Kernel::Kernel(c10::DeviceIndex device, const char* op) : lock_(lock_of(device)) {
  const c10::Stream stream = current_stream(device);
  while (!is_done(stream, last_position(stream))) {
    lock_.unlock();
    finish(stream);
    lock_.lock();
  }
  set_last_op(op);
}

at::Tensor Aliases::of(const at::Tensor& tensor) {
  if (!is_on_gpu(tensor)) return tensor;
  const c10::Storage& storage = tensor.storage();
  c10::Storage seen;
  for (const auto& [from, to] : storages_) {
    if (from == storage.unsafeGetStorageImpl()) seen = to;
  }
  if (!seen) {
    void* const data = inside(storage.data());
    seen = c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(),
                        c10::DataPtr(data, c10::kCPU), nullptr, /*resizable=*/false);
    storages_.emplace_back(storage.unsafeGetStorageImpl(), seen);
  }
  const at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      std::move(seen), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                     tensor.storage_offset());
  return alias;
}

Values run_kernel(c10::Device gpu, const char* name, const Values& inputs, const Body& body) {
  const c10::DeviceGuard guard(gpu);
  const c10::Stream stream = current_stream(gpu.index());
  Aliases aliases;
  const auto seen = [&](const Values& values, bool for_replay) {
    return mapped(values, [&](const at::Tensor& tensor) {
      // Later changes by the host must not affect the recording.
      return for_replay && !is_on_gpu(tensor) ? tensor.clone() : aliases.of(tensor);
    });
  };
  if (!records(stream)) {
    const Kernel kernel(gpu.index(), name);
    ++counts().kernels;
    Values values = seen(inputs, false);
    body(values);
    const Values made = like_on(gpu, values);
    copy(values, seen(made, false));
    return made;
  }
  // Runs on zeros, which are valid as indices, to find the sizes and dtypes of the results.
  Values tried = mapped(inputs, zeros_like);
  body(tried);
  const Values made = like_on(gpu, tried);
  keep(stream, name, [arguments = seen(inputs, true), results = seen(made, true), body] {
    Values values = arguments;
    body(values);
    copy(values, results);
  });
  return made;
}

}  // namespace tessera::test::fake_gpu
