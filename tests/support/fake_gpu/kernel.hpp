#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/TensorBody.h>
#include <ATen/core/ivalue.h>

namespace tessera::test::fake_gpu {

/// Runs one operation on a GPU during its lifetime: it holds the GPU's lock, and all earlier work
/// of the current stream has finished.
class Kernel {
 public:
  /// Keeps only the address of `op`.
  Kernel(c10::DeviceIndex device, const char* op);

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Aliases of GPU tensors for the CPU's kernels: the same memory, at the addresses of kernels.
class Aliases {
 public:
  /// Returns the alias; a host tensor is returned unchanged.
  at::Tensor of(const at::Tensor& tensor);

 private:
  std::vector<std::pair<const c10::StorageImpl*, c10::Storage>> storages_;
};

using Values = std::vector<c10::IValue>;
/// A kernel on CPU tensors, which replaces its arguments by its results.
using Body = std::function<void(Values&)>;
/// Runs a kernel on GPU memory or, if the GPU's current stream is recording, keeps it for replays
/// (with `name` by its address). Its results are new GPU tensors; tensors that it updated in place
/// stay as they are.
Values run_kernel(c10::Device gpu, const char* name, const Values& inputs, const Body& body);

/// Calls body(tensor) for each tensor in a value.
template <class Body>
void for_each_tensor(const c10::IValue& value, const Body& body) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) body(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) body(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor && tensor->defined()) body(*tensor);
    }
  }
}

inline bool is_on_gpu(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_privateuseone();
}

}  // namespace tessera::test::fake_gpu
